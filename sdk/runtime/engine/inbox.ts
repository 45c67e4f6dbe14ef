import type { Completion } from '@windlass/shared/wire/journal.ts'

/** Results that the program has not been given. Each is given once, whoever brings it how often. */
export class Inbox {
  readonly #results = new Map<number, Completion>()
  readonly #given = new Set<number>()
  /** Those that the program can be given, in their order. */
  readonly #ready: number[] = []

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

  makeReady(n: number): void {
    this.#ready.push(n)
  }

  hasReady(): boolean {
    return this.#ready.length > 0
  }

  nextReady(): Completion | undefined {
    return this.#results.get(this.#ready.shift() ?? 0)
  }

  /** The program has it. */
  given(n: number): void {
    this.#results.delete(n)
    this.#given.add(n)
  }
}
