/** How long entries gather at most while others were written just before. */
const GATHER_MS = 2

/** When what is gathered is written: at once where nothing was written just now, else together with what follows. */
export class FlushTimer {
  readonly #flush: () => void
  #timer: NodeJS.Timeout | undefined
  #immediate: NodeJS.Immediate | undefined
  #flushedAt = -Infinity

  constructor(flush: () => void) {
    this.#flush = flush
  }

  soon(isUrgent: boolean): void {
    if (this.#immediate) return
    if (isUrgent || performance.now() - this.#flushedAt >= GATHER_MS) this.#immediate = setImmediate(this.#flush)
    else this.within(GATHER_MS)
  }

  /** Where it is not to be earlier already. */
  within(ms: number): void {
    this.#timer ??= setTimeout(this.#flush, ms)
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
