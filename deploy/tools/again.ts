import type { Failure, Notes } from './file-seconds.ts'

/** More red files than this are no bad luck of a busy machine. */
const MOST_AGAIN = 3
/** What a random test has found is a finding, whatever the next seed finds. */
const IS_RANDOM = /_kit\/(repeated|seed)\.ts'/

/**
 * The red files among these that may be executed a second time, alone; none when one of them is random, when there are
 * many, or when something outside of files is red.
 */
export function worthAgain(
  { results, hasFailed }: Omit<Notes, 'failures'>,
  files: readonly string[],
  textOf: (file: string) => string,
) {
  const green = new Set(results.filter(({ failed }) => failed === 0).map(({ file }) => file))
  const red = files.filter((file) => !green.has(file))
  if (red.length === 0 && hasFailed) return []
  return red.length > MOST_AGAIN || red.some((file) => IS_RANDOM.test(textOf(file))) ? [] : red
}

/** What is said of files that were red once and green alone. The output of the run is long, and others follow it. */
export function findingsText(files: readonly string[], failures: readonly Failure[]): string {
  const errors = failures.map(({ file, name, text }) => `\n${file}: ${name}\n${text.replace(/^/gm, '  ')}`)
  return [`Red once and green alone, which is a finding: ${files.join(', ')}`, ...errors].join('\n')
}
