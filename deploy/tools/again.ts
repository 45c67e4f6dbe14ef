import type { Failure, Notes } from './file-seconds.ts'

/** More red files than this are no bad luck of a busy machine. */
const MOST_AGAIN = 3
/** Of an error. Those that compare long lists would hide the others. */
const MOST_CHARS = 3_000
/** What a random test has found is a finding, whatever the next seed finds. */
const IS_RANDOM = /_kit\/(repeated|seed)\.ts'/

/**
 * The red files among these that may be executed a second time, alone; none when one of them is random, when there are
 * many, or when something outside of files is red.
 */
export function worthAgain(
  { results, hasFailed }: Pick<Notes, 'results' | 'hasFailed'>,
  files: readonly string[],
  textOf: (file: string) => string,
) {
  const green = new Set(results.filter(({ failed }) => failed === 0).map(({ file }) => file))
  const red = files.filter((file) => !green.has(file))
  if (red.length === 0 && hasFailed) return []
  // The others of a group were not executed where one of it has broken their process: they have found nothing.
  const unexecuted = new Set(results.filter(({ ms }) => ms === 0).map(({ file }) => file))
  const found = red.filter((file) => !unexecuted.has(file))
  return found.length > MOST_AGAIN || found.some((file) => IS_RANDOM.test(textOf(file))) ? [] : red
}

/** What is said of what was red at first. The output of the run is long, and others follow it. */
export function findingsText(failures: readonly Failure[], files: readonly string[], isRed: boolean): string {
  const cut = (text: string) => text.slice(0, MOST_CHARS).replace(/^/gm, '  ')
  const errors = failures.map(({ file, name, text }) => `\n${file}: ${name}\n${cut(text)}`)
  const again = isRed ? 'red once more, alone' : 'green alone, which is a finding'
  return [files.length === 0 ? 'Red:' : `Red at first, then ${again}: ${files.join(', ')}`, ...errors].join('\n')
}
