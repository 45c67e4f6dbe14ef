/** Counts what is under way and lets go of something costly when nothing was for a while. */
export type WhenIdle = {
  /** Runs the work and keeps the thing from being let go meanwhile. */
  busy<T>(work: () => Promise<T>): Promise<T>
  /** Lets go without waiting. Work that is under way is the caller's to have ended. */
  now(): Promise<void>
}

export function whenIdle(idleMs: number, letGo: () => Promise<void> | void): WhenIdle {
  let active = 0
  let timer: NodeJS.Timeout | undefined
  let held = false

  async function now() {
    clearTimeout(timer)
    if (!held) return
    held = false
    await letGo()
  }

  return {
    now,
    async busy(work) {
      clearTimeout(timer)
      active++
      held = true
      try {
        return await work()
      } finally {
        active--
        // Letting go never throws by contract; should it, that is a bug to be seen, hence no catch.
        if (active === 0) timer = setTimeout(() => void now(), idleMs).unref()
      }
    },
  }
}

/**
 * How long the tools of a deploy stay up. Started anew they cost a deploy a second; who develops saves every few minutes,
 * and what they hold meanwhile is about 130 MB.
 */
export const TOOLS_IDLE_MS = 15 * 60_000
