const WARN_AT = 5_000
const MOST = 25_000

/** Warns once, then throws: before the `n`th entry is made. */
export function checkRoom(n: number, warn: (text: string) => void): void {
  if (n === WARN_AT) {
    warn(
      `This run has ${WARN_AT} entries in its journal, and may have ${MOST}. Hand parts of its work to runs of their ` +
        'own with workflows.call(), or do more within one step().',
    )
  }
  if (n <= MOST) return
  const message =
    `The journal of this run is full: ${MOST} sleeps, questions, calls and steps are the most. Split the work: hand ` +
    'parts of it to runs of their own with workflows.call(), or do more within one step().'
  throw Object.assign(new Error(message), { code: 'JOURNAL_FULL' })
}
