import type { Completion, JournalRecord } from '@windlass/shared/wire/journal.ts'

/** Of an entry that an earlier attempt has left. */
export type FormerResult = Pick<JournalRecord, 'attempt' | 'delivered' | 'former' | 'completed'>

/** The last attempt that was given it, and its place in the order there. */
const lastGiven = ({ attempt, delivered, former }: FormerResult): JournalRecord['former'] =>
  delivered === null ? former : [attempt, delivered]

/**
 * What earlier attempts were given comes before what came since, else a race ends otherwise. The last of them counts
 * first: it has followed the order of those before it.
 */
export function comesBefore(a: FormerResult, b: FormerResult): boolean {
  const [givenA, givenB] = [lastGiven(a), lastGiven(b)]
  if (!givenA && !givenB) return (a.completed ?? Infinity) < (b.completed ?? Infinity)
  if (!givenA || !givenB) return Boolean(givenA)
  return givenA[0] === givenB[0] ? givenA[1] < givenB[1] : givenA[0] > givenB[0]
}

/** Results that the program has not been given. Each is given once, whoever brings it how often. */
export class Inbox {
  readonly #results = new Map<number, Completion>()
  readonly #given = new Set<number>()
  /** Those that the program can be given, in their order. */
  readonly #ready: { n: number; former?: FormerResult }[] = []

  /** The first result of an entry counts. False: there is one already. */
  add(completion: Completion): boolean {
    const { n } = completion
    if (this.#given.has(n) || this.#results.has(n)) return false
    this.#results.set(n, completion)
    return true
  }

  has(n: number): boolean {
    return this.#results.has(n)
  }

  get(n: number): Completion | undefined {
    return this.#results.get(n)
  }

  /** Numbers of the entries, in the order in which their results came. */
  numbers(): Iterable<number> {
    return this.#results.keys()
  }

  /** `former`: where a result stood that earlier attempts have left. Of such that are ready at once it is the order. */
  makeReady(n: number, former?: FormerResult): void {
    if (!former) return void this.#ready.push({ n })
    // From the end: mostly they are asked for in that order, and there may be 25,000.
    const before = this.#ready.findLastIndex((each) => !each.former || !comesBefore(former, each.former))
    this.#ready.splice(before + 1, 0, { n, former })
  }

  hasReady(): boolean {
    return this.#ready.length > 0
  }

  nextReady(): Completion | undefined {
    return this.#results.get(this.#ready.shift()?.n ?? 0)
  }

  /** The program has it. */
  given(n: number): void {
    this.#results.delete(n)
    this.#given.add(n)
  }
}
