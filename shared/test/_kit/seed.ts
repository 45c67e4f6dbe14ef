/** Numbers that look random and are the same for the same seed (mulberry32). */
export interface Random {
  /** From 0 up to, not including, 1. */
  next(): number
  /** A whole number from `from` to `to`, both included. */
  between(from: number, to: number): number
  pick<T>(from: readonly T[]): T
}

/** WINDLASS_TEST_SEED repeats a run of a test; without it each one is different. */
export function chosenSeed(): number {
  const given = process.env.WINDLASS_TEST_SEED
  if (given === undefined || given === '') return Math.floor(Math.random() * 1_000_000)
  if (/^-?\d{1,10}$/.test(given)) return Number(given)
  throw new Error(`WINDLASS_TEST_SEED is a number such as 4711, not ${given}`)
}

export function randomOf(seed: number): Random {
  let state = seed | 0
  const next = () => {
    state = (state + 0x6d2b79f5) | 0
    let mixed = Math.imul(state ^ (state >>> 15), 1 | state)
    mixed = (mixed + Math.imul(mixed ^ (mixed >>> 7), 61 | mixed)) ^ mixed
    return ((mixed ^ (mixed >>> 14)) >>> 0) / 2 ** 32
  }
  const between = (from: number, to: number) => from + Math.floor(next() * (to - from + 1))
  return { next, between, pick: (from) => from[between(0, from.length - 1)]! }
}
