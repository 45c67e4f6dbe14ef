/** How a reader has taken what is sent to it, lately. */
export interface Taking {
  took(this: void, bytes: number): void
  /** Undefined while it is too young to have a rate. */
  bytesPerS(): number | undefined
  /** For how long nothing has been taken. */
  quietMs(): number
}

/** A reader that is younger has no rate yet. */
const YOUNG_MS = 5_000
/** What goes out at first fills buffers on the way, 2.5 MB in one machine, also where nobody reads. */
const BURST_MS = 2_000
/**
 * The last one to two of them count. Kernels ask for more when a third of their buffers is free, so that a reader of
 * 100 KB/s seemed to take 1.4 MB every 14 s.
 */
const SPAN_MS = 15_000

export function createTaking(now: () => number): Taking {
  const since = now()
  let takenAt = since
  /** When the current span began. */
  let spanAt = since + BURST_MS
  let current = 0
  let before = 0

  function turn(): void {
    const spans = Math.floor((now() - spanAt) / SPAN_MS)
    if (spans <= 0) return
    before = spans === 1 ? current : 0
    current = 0
    spanAt += spans * SPAN_MS
  }

  return {
    took(bytes) {
      takenAt = now()
      if (takenAt - since < BURST_MS) return
      turn()
      current += bytes
    },
    bytesPerS() {
      if (now() - since < YOUNG_MS) return undefined
      turn()
      const from = Math.max(since + BURST_MS, spanAt - SPAN_MS)
      return (1000 * (before + current)) / (now() - from)
    },
    quietMs: () => now() - takenAt,
  }
}
