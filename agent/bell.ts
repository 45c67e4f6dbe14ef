/** Wakes whoever waits for something to change. A ring without a waiter is kept for the next one. */
export interface Bell {
  ring(): void
  /** Resolves at the next ring, or when the signal fires. */
  wait(signal: AbortSignal): Promise<void>
}

/** For one waiter at a time. The next may wait before one whose signal has fired has heard of that. */
export function createBell(): Bell {
  let isRung = false
  let waiter: (() => void) | undefined
  return {
    ring() {
      isRung = waiter === undefined
      waiter?.()
      waiter = undefined
    },
    async wait(signal) {
      if (signal.aborted) return
      if (isRung) {
        isRung = false
        return
      }
      const { promise, resolve } = Promise.withResolvers<void>()
      const leave = () => {
        if (waiter === resolve) waiter = undefined
        resolve()
      }
      waiter = resolve
      signal.addEventListener('abort', leave, { once: true })
      await promise
      signal.removeEventListener('abort', leave)
    },
  }
}
