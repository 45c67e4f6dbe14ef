import type { Draws } from './store.ts'

/** A coordinator draws a thirtieth of a limit at a time, and the next block when half of one is left: it holds a twentieth at most. */
const BLOCKS = 30

export interface BucketOptions {
  key: string
  limit: number
  windowMs: number
  draws: Draws
}

/** `open`: a request can be served. `spent`: none until the window ends. `empty`: the store has to be asked. */
export type BucketState = 'open' | 'spent' | 'empty'

/** What this coordinator may still serve of a limit without asking. Times are of `performance.now()`. */
export class Bucket {
  readonly limit: number
  readonly #key: string
  readonly #windowMs: number
  readonly #draws: Draws
  readonly #block: number
  readonly #low: number
  #endsAt = Number.NEGATIVE_INFINITY
  #held = 0
  /** What the store had left when it was last asked. */
  #left = 0
  /** What has been drawn in this window. */
  #drawn = 0
  /** No more is to be had before the window ends. */
  #isDry = false
  #drawing: Promise<void> | undefined

  constructor({ key, limit, windowMs, draws }: BucketOptions) {
    this.limit = limit
    this.#key = key
    this.#windowMs = windowMs
    this.#draws = draws
    this.#block = Math.max(1, Math.floor(limit / BLOCKS))
    this.#low = Math.floor(this.#block / 2)
  }

  state(now: number): BucketState {
    // What is left of a window dies with it.
    if (now >= this.#endsAt) return 'empty'
    if (this.#held > 0) return 'open'
    return this.#isDry ? 'spent' : 'empty'
  }

  /** Only when it is open. */
  spend(): void {
    this.#held--
    if (this.#held <= this.#low && !this.#isDry) void this.refill()
  }

  /** Resolves when the store has been asked; never rejects. One at a time: who comes meanwhile waits for the same answer. */
  refill(): Promise<void> {
    return (this.#drawing ??= this.#ask().finally(() => (this.#drawing = undefined)))
  }

  /** How many more requests this window has room for, as far as this coordinator knows. */
  get remaining(): number {
    return this.#held + this.#left
  }

  get endsAt(): number {
    return this.#endsAt
  }

  isIdle(now: number): boolean {
    return now >= this.#endsAt && this.#drawing === undefined
  }

  async #ask(): Promise<void> {
    const draw = await this.#draws({ key: this.#key, wanted: this.#block, limit: this.limit })
    const now = performance.now()
    if (draw === undefined) return this.#helpItself(now)
    // Another coordinator, whose clock is ahead, may have begun the next window before this one ended here.
    const isNext = now + draw.endsInMs > this.#endsAt + this.#windowMs / 2
    if (isNext || now >= this.#endsAt) this.#begin(now + draw.endsInMs)
    this.#held += draw.granted
    this.#drawn += draw.granted
    this.#left = draw.left
    this.#isDry = draw.left === 0
  }

  /** Without the store each coordinator keeps the whole limit by itself: more may be served than the limit, but none less. */
  #helpItself(now: number): void {
    if (now >= this.#endsAt) this.#begin(now + this.#windowMs)
    this.#held += this.limit - this.#drawn
    this.#drawn = this.limit
    this.#left = 0
    this.#isDry = true
  }

  #begin(endsAt: number): void {
    this.#endsAt = endsAt
    this.#held = 0
    this.#drawn = 0
  }
}
