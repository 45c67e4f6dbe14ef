/** How long entries gather at most while others were written just before. */
const GATHER_MS = 2
/**
 * The same with so much unacknowledged that nobody hears it soon: twice what may be under way. A batch and its mark
 * have 220 bytes besides its entries: with one for each line of a program, an outage takes four times the disk of what
 * was said, and the start after a kill reads it.
 */
const BEHIND_BYTES = 8 * 1024 * 1024
const BEHIND_GATHER_MS = 100

/** When what is gathered is written: at once where nothing was written just now, else together with what follows. */
export class FlushTimer {
  readonly #flush: () => void
  readonly #unacknowledged: () => number
  #timer: NodeJS.Timeout | undefined
  #dueAt = Infinity
  #immediate: NodeJS.Immediate | undefined
  #flushedAt = -Infinity

  /** `unacknowledged`: how many bytes are. */
  constructor(flush: () => void, unacknowledged: () => number) {
    this.#flush = flush
    this.#unacknowledged = unacknowledged
  }

  soon(isUrgent: boolean): void {
    if (this.#immediate) return
    const gatherMs = this.#unacknowledged() < BEHIND_BYTES ? GATHER_MS : BEHIND_GATHER_MS
    if (isUrgent || performance.now() - this.#flushedAt >= gatherMs) this.#immediate = setImmediate(this.#flush)
    else this.within(gatherMs)
  }

  /** Where it is not to be earlier already. */
  within(ms: number): void {
    const dueAt = performance.now() + ms
    if (this.#timer && this.#dueAt <= dueAt) return
    clearTimeout(this.#timer)
    this.#timer = setTimeout(this.#flush, ms)
    this.#dueAt = dueAt
  }

  clear(): void {
    clearTimeout(this.#timer)
    clearImmediate(this.#immediate)
    this.#timer = this.#immediate = undefined
  }

  flushed(): void {
    this.#flushedAt = performance.now()
  }
}
