import type { Offers } from '@windlass/shared/wire/offers.ts'

/** Characters of one answer, as it is printed and sent in one go. The offer that passes it is the first that waits. */
const MOST_CHARS = 24 * 1024 * 1024
/** As JSON in JSON: most of a text stays one character, and a quote becomes two. */
const CHARS_PER_CHAR = 1.25

/** JSON writes a control character as six. */
function charsAtMost(set: Readonly<Record<string, string>>): number {
  return Object.entries(set).reduce((sum, [name, value]) => sum + 6 * (name.length + value.length), 0)
}

/** How many of these offers are said in one answer: one at least. */
export function countThatFit(offers: Offers['offers'], variableSets: Offers['variableSets']): number {
  const counted = new Set<string>()
  let chars = 0
  const tooMany = offers.findIndex(({ inputText, journal, variables }, i) => {
    chars += (inputText.length + (journal.text?.length ?? 0)) * CHARS_PER_CHAR
    if (!counted.has(variables)) chars += charsAtMost(variableSets[variables]!)
    counted.add(variables)
    return chars > MOST_CHARS && i > 0
  })
  return tooMany === -1 ? offers.length : tooMany
}
