/** Wakes whoever waits for something to change. A ring without a waiter is kept for the next one. */
export interface Bell {
  ring(): void
  /** Resolves at the next ring, or when the signal fires. */
  wait(signal: AbortSignal): Promise<void>
}

/** For one waiter. */
export function createBell(): Bell {
  let isRung = false
  let wake: (() => void) | undefined
  const ringOrAbort = (signal: AbortSignal) =>
    new Promise<void>((resolve) => {
      const stop = () => resolve()
      wake = () => {
        signal.removeEventListener('abort', stop)
        resolve()
      }
      signal.addEventListener('abort', stop, { once: true })
    })
  return {
    ring() {
      isRung = true
      wake?.()
    },
    async wait(signal) {
      if (!isRung && !signal.aborted) await ringOrAbort(signal)
      wake = undefined
      isRung = false
    },
  }
}
