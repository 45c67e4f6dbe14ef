import type { Completion, JournalRecord } from '@windlass/shared/wire/journal.ts'

/** Of an entry that an earlier attempt has left. */
export type FormerResult = Pick<JournalRecord, 'attempt' | 'delivered' | 'after' | 'former' | 'completed'>

/** The last attempt that was given it, its place in the order there, and how many calls that had made by then. */
export const lastGiven = ({ attempt, delivered, after, former }: FormerResult): JournalRecord['former'] =>
  delivered === null ? former : [attempt, delivered, after]

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
  /** Those that the program can be given, in their order: first what earlier attempts have left. */
  readonly #former: { n: number; former: FormerResult }[] = []
  readonly #ready: { n: number; former?: undefined }[] = []

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
    const before = this.#former.findLastIndex((each) => !comesBefore(former, each.former))
    this.#former.splice(before + 1, 0, { n, former })
  }

  hasReady(): boolean {
    return this.firstReady !== undefined
  }

  /** Where the next one stood. */
  get firstReady(): { former?: FormerResult } | undefined {
    return this.#former[0] ?? this.#ready[0]
  }

  /** `mayGive`: else it stays. */
  nextReady(mayGive: (former: FormerResult | undefined) => boolean = () => true): Completion | undefined {
    const first = this.#former[0] ?? this.#ready[0]
    if (!first || !mayGive(first.former)) return undefined
    if (first.former) this.#former.shift()
    else this.#ready.shift()
    return this.#results.get(first.n)
  }

  /** The program has it. */
  given(n: number): void {
    this.#results.delete(n)
    this.#given.add(n)
  }
}
