/** Pairs of letters that are compared for one suggestion, some 5 ms: 600 names of 20 letters. Names may be hostile. */
const MOST_PAIRS = 250_000

/**
 * The candidate a person most likely meant, or undefined when nothing is near enough to be worth naming. Candidates are
 * looked at in their order, as far as `MOST_PAIRS` goes.
 */
export function nearest(typed: string, candidates: Iterable<string>): string | undefined {
  // A third of the word may be wrong; beyond that a suggestion confuses more than it helps.
  const tolerance = Math.max(1, Math.floor(typed.length / 3))
  let best: string | undefined
  let bestDistance = tolerance + 1
  let pairs = 0
  for (const candidate of candidates) {
    // Length alone already puts a lower bound on the distance.
    if (Math.abs(candidate.length - typed.length) >= bestDistance) continue
    pairs += typed.length * candidate.length
    if (pairs > MOST_PAIRS) break
    const distance = editDistance(typed.toLowerCase(), candidate.toLowerCase())
    if (distance < bestDistance) [best, bestDistance] = [candidate, distance]
  }
  return best
}

/** `, did you mean …?` ready to be put behind a message, or nothing. */
export function didYouMean(typed: string, candidates: Iterable<string>): string {
  const match = nearest(typed, candidates)
  return match === undefined ? '' : `, did you mean \`${match}\`?`
}

/** Insertions, deletions, replacements and swaps of neighbours (`tiemout`) count one each. */
export function editDistance(a: string, b: string): number {
  let beforeLast: number[] = []
  let last = Array.from({ length: b.length + 1 }, (_, column) => column)
  for (let row = 1; row <= a.length; row++) {
    const current = [row]
    for (let column = 1; column <= b.length; column++) {
      const same = a[row - 1] === b[column - 1]
      let cost = Math.min(at(last, column) + 1, at(current, column - 1) + 1, at(last, column - 1) + (same ? 0 : 1))
      const swapped = row > 1 && column > 1 && a[row - 1] === b[column - 2] && a[row - 2] === b[column - 1]
      if (swapped) cost = Math.min(cost, at(beforeLast, column - 2) + 1)
      current.push(cost)
    }
    ;[beforeLast, last] = [last, current]
  }
  return at(last, b.length)
}

function at(row: number[], column: number): number {
  return row[column] ?? Number.POSITIVE_INFINITY
}
