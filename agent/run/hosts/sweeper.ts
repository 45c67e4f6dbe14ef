import { sweepForgotten } from '../../os/end-processes.ts'
import type { HostProcess } from './host-process.ts'

/** Looks, somewhat later, for what may have been left of processes that are gone. */
export interface Sweeper {
  /** A program can lie about having started others: such descendants are found by their marker. */
  later(): void
  /** Something of this one could not be killed yet. */
  survived(host: HostProcess): void
  /** Those that the machine does not let go. */
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
/**
 * Of a process that has millions of mappings, files or watches the kernel is busy for up to half a minute: that is no
 * fault of the machine. Each try takes 5 s, and they are 10 s apart.
 */
const TRIES = 3

export function createSweeper({ markerPrefix, isKnown, onEnd, log }: SweeperOptions): Sweeper {
  /** How often each was to be ended in vain. */
  const survivors = new Map<HostProcess, number>()
  /** Those whose next end is under way. */
  const tried = new Set<HostProcess>()
  let timer: NodeJS.Timeout | undefined
  let isClosed = false

  function later(): void {
    if (timer || isClosed) return
    timer = setTimeout(() => {
      timer = undefined
      const unseen = (error: unknown) => log('program.unswept', { error })
      void sweep().catch(unseen)
      for (const host of survivors.keys()) void tryAgain(host).catch(unseen)
    }, FORGOTTEN_MS)
    timer.unref()
  }

  async function sweep(): Promise<void> {
    const killed = await sweepForgotten(`${markerPrefix}.`, isKnown)
    if (killed > 0) log('program.strays', { killed })
  }

  async function tryAgain(host: HostProcess): Promise<void> {
    // A try that takes long counts once, however often the timer fires meanwhile.
    if (tried.has(host)) return
    tried.add(host)
    const hasEnded = await host.enclosure.end(host.pid).finally(() => tried.delete(host))
    if (!hasEnded) return note(host)
    survivors.delete(host)
    onEnd(host)
  }

  function note(host: HostProcess): void {
    const tries = (survivors.get(host) ?? 0) + 1
    survivors.set(host, tries)
    log('program.survived', { pid: host.pid, tries })
    later()
  }

  return {
    later,
    survived: note,
    survivors: () => [...survivors.values()].filter((tries) => tries >= TRIES).length,
    async close() {
      isClosed = true
      clearTimeout(timer)
      await sweep()
    },
  }
}
