import type { Offer } from '@windlass/shared/wire/agent.ts'

/** How far a bundle has come, in words for whoever waits for it. */
export class Arrival {
  readonly #of: number
  readonly #wantedAt = performance.now()
  #begunAt: number | undefined
  #bytes = 0
  #mostBytes = 0
  #nextBytes = 0
  #progressAt = 0
  /** So much more of it is progress. */
  readonly #step: number

  constructor({ bytes }: Offer['bundle'], step: number) {
    this.#of = bytes
    this.#step = step
  }

  /** Its turn has come. */
  begin(): void {
    this.#begunAt = this.#progressAt = performance.now()
    this.#nextBytes = this.#step
  }

  /** Counted from its first byte. */
  get bytes(): number {
    return this.#bytes
  }

  get isWhole(): boolean {
    return this.#bytes >= this.#of
  }

  /** Since when it has come no further. What comes again after it was damaged is no progress. */
  get progressAt(): number {
    return this.#progressAt
  }

  came(bytes: number): void {
    this.#bytes += bytes
    this.#mostBytes = Math.max(this.#mostBytes, this.#bytes)
    if (this.#mostBytes < this.#nextBytes) return
    this.#nextBytes = this.#mostBytes + this.#step
    this.#progressAt = performance.now()
  }

  /** What has come was damaged. */
  startAgain(): void {
    this.#bytes = 0
  }

  text(): string {
    const [all, come] = [megabytes(this.#of), megabytes(this.#bytes)]
    const ms = performance.now() - (this.#begunAt ?? this.#wantedAt)
    const seconds = `${Math.round(ms / 1000)} s`
    if (this.#begunAt === undefined) return `its bundle (${all} MB) has waited ${seconds} for the bundles of other runs`
    return `${come} of ${all} MB of its bundle have come in ${seconds}`
  }
}

const megabytes = (bytes: number) => (bytes / 1_000_000).toFixed(bytes < 100_000 ? 3 : 1)
