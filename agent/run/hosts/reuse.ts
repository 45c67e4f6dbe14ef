import type { HostProcess } from './host-process.ts'

export interface ReuseOptions {
  /** Processes that may wait for another run at the same time. */
  most: number
  idleMs: number
  discard(host: HostProcess): void
}

export interface IdleProcesses {
  take(key: string): HostProcess | undefined
  put(key: string, host: HostProcess): void
  count(): number
  close(): HostProcess[]
}

interface Idle {
  key: string
  host: HostProcess
  since: number
}

/** Processes between two runs of the same program. The oldest go first: when there are too many, and when their time is up. */
export function keepIdle(options: ReuseOptions): IdleProcesses {
  let idle: Idle[] = []
  let timer: NodeJS.Timeout | undefined

  function remove(entry: Idle): void {
    idle = idle.filter((other) => other !== entry)
  }

  function discard(entry: Idle): void {
    remove(entry)
    options.discard(entry.host)
  }

  function expire(): void {
    timer = undefined
    const limit = performance.now() - options.idleMs
    for (const entry of idle.filter((each) => each.since <= limit)) discard(entry)
    expireLater()
  }

  function expireLater(): void {
    const oldest = idle[0]
    if (timer || !oldest) return
    timer = setTimeout(expire, Math.max(oldest.since + options.idleMs - performance.now(), 1))
    timer.unref()
  }

  return {
    take: (key) => {
      for (;;) {
        // The last one used is the warmest.
        const entry = idle.findLast((each) => each.key === key)
        if (!entry) return undefined
        remove(entry)
        if (!entry.host.hasExited() && !entry.host.isTainted()) return entry.host
        options.discard(entry.host)
      }
    },
    put: (key, host) => {
      const entry = { key, host, since: performance.now() }
      // One listener per process, however often it comes by.
      if (host.runs === 1) void host.exit.then(() => idle.filter((each) => each.host === host).forEach(discard))
      idle.push(entry)
      if (idle.length > options.most && idle[0]) discard(idle[0])
      expireLater()
    },
    count: () => idle.length,
    close: () => {
      clearTimeout(timer)
      const left = idle.map((entry) => entry.host)
      idle = []
      return left
    },
  }
}
