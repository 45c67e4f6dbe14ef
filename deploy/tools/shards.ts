// Parts of the test files that together are all of them, as with `--shard` of other test runners: for whoever cannot
// wait for all at once.
import { LONGEST } from './test-groups.ts'

export interface Shard {
  /** From 1 on. */
  readonly index: number
  readonly total: number
}

/** From a text like `2/3`; nothing when there is no such part. */
export function readShard(text: string): Shard | undefined {
  const [, index, total] = (/^(\d{1,3})\/(\d{1,3})$/.exec(text) ?? []).map(Number)
  return index && total && index <= total ? { index, total } : undefined
}

/** The longest are dealt out first, so that the parts take about equally long. In the order of `files`. */
export function shardOf(files: readonly string[], { index, total }: Shard): string[] {
  const dealt = [...files.filter((file) => LONGEST.has(file)), ...files.filter((file) => !LONGEST.has(file))]
  const ours = new Set(dealt.filter((_file, at) => at % total === index - 1))
  return files.filter((file) => ours.has(file))
}
