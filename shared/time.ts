/** The end of the year 9999, in milliseconds since the epoch. Texts of ISO 8601 and the database know no later time. */
export const LAST_MOMENT = 253_402_300_799_999

/** A wait that ends early when the signal fires. It resolves either way: the caller looks at the signal. */
export function pause(ms: number, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) return Promise.resolve()
  return new Promise((resolve) => {
    const done = () => {
      clearTimeout(timer)
      signal?.removeEventListener('abort', done)
      resolve()
    }
    const timer = setTimeout(done, ms)
    signal?.addEventListener('abort', done, { once: true })
  })
}

/** Full jitter (a random share of a doubling bound), so that a fleet does not come back all at once. */
export function backoffMs(failures: number, options: { firstMs: number; capMs: number }, random = Math.random): number {
  const bound = Math.min(options.capMs, options.firstMs * 2 ** Math.min(failures, 30))
  return Math.round(random() * bound)
}

/** Rejects with `message` when the promise has not settled in time. */
export async function within<T>(ms: number, promise: Promise<T>, message: string): Promise<T> {
  let timer: NodeJS.Timeout | undefined
  const late = new Promise<never>((_, reject) => {
    timer = setTimeout(() => reject(new Error(`${message} (waited ${ms} ms)`)), ms)
  })
  try {
    return await Promise.race([promise, late])
  } finally {
    clearTimeout(timer)
  }
}

/** Waits for the promise, but no longer than that. Rejects as it does. */
export async function atMost(ms: number, promise: Promise<unknown>): Promise<void> {
  const over = new AbortController()
  try {
    await Promise.race([promise, pause(ms, over.signal)])
  } finally {
    over.abort()
  }
}
