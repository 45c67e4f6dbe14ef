import type { HostProcess } from './host-process.ts'

interface SparesOptions {
  /** How many are kept ready. */
  target: number
  start(): HostProcess
  discard(host: HostProcess): void
  /** Whether a core is free: a spare that boots while runs wait for CPU costs them more than it will ever save. */
  mayStart(): boolean
  onDeath(): void
  /** One could not even be started: no user id or cgroup was left, say. It is tried again later. */
  onFailure(error: unknown): void
}

export interface Spares {
  take(): HostProcess | undefined
  /** Something has changed: a run ended, a spare was taken. */
  refillSoon(): void
  /** Takes out those that are of no use any more. */
  drop(isStale: (host: HostProcess) => boolean): HostProcess[]
  count(): { booting: number; ready: number }
  close(): HostProcess[]
}

const REFILL_MS = 20
const FIRST_BACKOFF_MS = 1_000
const LONGEST_BACKOFF_MS = 30_000

/** Booted processes with nothing of any customer in them. One serves one run and is gone. */
export function keepSpares(options: SparesOptions): Spares {
  let hosts: HostProcess[] = []
  let timer: NodeJS.Timeout | undefined
  let deaths = 0
  let isClosed = false

  function refillSoon(afterMs = REFILL_MS): void {
    if (isClosed || timer || hosts.length >= options.target) return
    timer = setTimeout(() => {
      timer = undefined
      // A run that ends asks again.
      if (options.mayStart()) add()
      if (options.mayStart()) refillSoon()
    }, afterMs)
    timer.unref()
  }

  function add(): void {
    try {
      const host = options.start()
      hosts.push(host)
      void host.exit.then(() => died(host))
    } catch (error) {
      options.onFailure(error)
      backOff()
    }
  }

  function died(host: HostProcess): void {
    if (!hosts.includes(host)) return
    hosts = hosts.filter((other) => other !== host)
    options.discard(host)
    options.onDeath()
    backOff()
  }

  function backOff(): void {
    deaths += 1
    // A short wait that is under way must not undercut the long one.
    clearTimeout(timer)
    timer = undefined
    refillSoon(Math.min(FIRST_BACKOFF_MS * 2 ** (deaths - 1), LONGEST_BACKOFF_MS))
  }

  return {
    take: () => {
      const best = hosts.find((host) => host.isReady()) ?? hosts[0]
      if (!best) return undefined
      hosts = hosts.filter((other) => other !== best)
      if (best.isReady()) deaths = 0
      refillSoon()
      return best
    },
    refillSoon: () => refillSoon(),
    drop: (isStale) => {
      const stale = hosts.filter(isStale)
      hosts = hosts.filter((host) => !stale.includes(host))
      refillSoon()
      return stale
    },
    count: () => {
      const ready = hosts.filter((host) => host.isReady()).length
      return { ready, booting: hosts.length - ready }
    },
    close: () => {
      isClosed = true
      clearTimeout(timer)
      const left = hosts
      hosts = []
      return left
    },
  }
}
