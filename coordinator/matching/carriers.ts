import { createSlices } from '../slices.ts'

/** Some of a list of runners: the bit of each one's index. */
export type Bits = Uint32Array

export const hasBit = (bits: Bits, index: number): boolean => ((bits[index >>> 5]! >>> (index & 31)) & 1) === 1

/** The indexes in ascending order. */
export function* indexesOf(bits: Bits): Generator<number> {
  for (let at = 0; at < bits.length; at++) {
    for (let rest = bits[at]!; rest !== 0; rest &= rest - 1) yield at * 32 + 31 - Math.clz32(rest & -rest)
  }
}

/** Answers who of the runners carries all of these labels. */
export type Carriers = (labels: readonly string[]) => Bits

/**
 * Reads the labels of each runner once. Comparing each runner with each combination that is asked for, label by label,
 * took seconds.
 */
export async function readCarriers(
  runners: readonly { labels: Iterable<string> }[],
  asked: ReadonlySet<string>,
): Promise<Carriers> {
  const length = Math.ceil(runners.length / 32)
  const byLabel = new Map<string, Bits>()
  const endOfSlice = createSlices()
  for (const [index, { labels }] of runners.entries()) {
    for (const label of labels) {
      if (!asked.has(label)) continue
      const bits = byLabel.get(label) ?? new Uint32Array(length)
      bits[index >>> 5]! |= 1 << (index & 31)
      byLabel.set(label, bits)
    }
    await endOfSlice()
  }
  const all = new Uint32Array(length).fill(-1)
  if (runners.length % 32 > 0) all[length - 1] = (1 << (runners.length % 32)) - 1
  return (labels) => {
    const bits = all.slice()
    for (const label of labels) {
      const carrying = byLabel.get(label)
      if (!carrying) return bits.fill(0)
      for (let at = 0; at < length; at++) bits[at]! &= carrying[at]!
    }
    return bits
  }
}
