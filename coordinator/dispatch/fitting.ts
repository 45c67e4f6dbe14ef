import type { Offers } from '@windlass/shared/wire/offers.ts'
import type { VariableSets } from '../environments/sets.ts'

/**
 * Characters of one answer, as it is printed and sent in one go. The offer that passes it is the first that waits.
 * Inputs, which are most of it, have a lower limit where they are claimed.
 */
const MOST_CHARS = 2 * 1024 * 1024
/** As JSON in JSON: most of a text stays one character, and a quote becomes two. */
const CHARS_PER_CHAR = 1.25

/** JSON writes a control character as six. */
function charsAtMost(set: Readonly<Record<string, string>>): number {
  return Object.entries(set).reduce((sum, [name, value]) => sum + 6 * (name.length + value.length), 0)
}

/**
 * How many of these offers are said in one answer, one at least, with their variables, each set once. Sets are read one
 * after the other until the answer is full: those of 256 runs may be 128 MiB.
 */
export async function fittingOf(
  sets: VariableSets,
  offers: Offers['offers'],
): Promise<{ count: number; variableSets: Offers['variableSets'] }> {
  const variableSets: Offers['variableSets'] = {}
  let chars = 0
  for (const [count, { inputText, journal, variables }] of offers.entries()) {
    chars += (inputText.length + (journal.text?.length ?? 0)) * CHARS_PER_CHAR
    const isNew = variableSets[variables] === undefined
    const set = variableSets[variables] ?? (await sets.get(variables))
    if (isNew) chars += charsAtMost(set)
    if (chars > MOST_CHARS && count > 0) return { count, variableSets }
    variableSets[variables] = set
  }
  return { count: offers.length, variableSets }
}
