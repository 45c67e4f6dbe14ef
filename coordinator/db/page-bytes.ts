/** A page is read and printed in one go, in which others wait: a hundred large versions would have 50 MB. */
const MOST_BYTES = 1024 * 1024

/** How many rows of a page, which have so many bytes each, fit into one answer: one at least. */
export function countFitting(rows: readonly { bytes: number }[]): number {
  let sum = 0
  const end = rows.findIndex(({ bytes }, i) => (sum += bytes) > MOST_BYTES && i > 0)
  return end === -1 ? rows.length : end
}
