import { sweepForgotten } from '../../os/end-processes.ts'
import type { HostProcess } from './host-process.ts'

/** Looks, somewhat later, for what may have been left of processes that are gone. */
export interface Sweeper {
  /** A program can lie about having started others: such descendants are found by their marker. */
  later(): void
  /** Something of this one could not be killed. */
  survived(host: HostProcess): void
  survivors(): number
  /** A last look; then no more. */
  close(): Promise<void>
}

interface SweeperOptions {
  markerPrefix: string
  isKnown: (marker: string) => boolean
  /** What hung in the kernel has come back from there, and is dead. */
  onEnd: (host: HostProcess) => void
  log: (name: string, facts?: Record<string, unknown>) => void
}

const FORGOTTEN_MS = 10_000

export function createSweeper({ markerPrefix, isKnown, onEnd, log }: SweeperOptions): Sweeper {
  const survivors = new Set<HostProcess>()
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  function later(): void {
    if (timer || isClosed) return
    timer = setTimeout(() => {
      timer = undefined
      const unseen = (error: unknown) => log('program.unswept', { error })
      void sweep().catch(unseen)
      for (const host of survivors) void tryAgain(host).catch(unseen)
    }, FORGOTTEN_MS)
    timer.unref()
  }

  async function sweep(): Promise<void> {
    const killed = await sweepForgotten(`${markerPrefix}.`, isKnown)
    if (killed > 0) log('program.strays', { killed })
  }

  async function tryAgain(host: HostProcess): Promise<void> {
    if (!(await host.enclosure.end(host.pid))) return later()
    survivors.delete(host)
    onEnd(host)
  }

  return {
    later,
    survived(host) {
      survivors.add(host)
      log('program.survived', { pid: host.pid })
    },
    survivors: () => survivors.size,
    async close() {
      isClosed = true
      clearTimeout(timer)
      await sweep()
    },
  }
}
