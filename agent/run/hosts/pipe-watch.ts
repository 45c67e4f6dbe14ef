import { fstatSync, statSync, type Stats } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { HeldPipe } from '../program/held-pipe.ts'
import { PIPE_WATCH_SCRIPT } from './pipe-watch-script.ts'

/**
 * Ends programs that keep their agent waiting over a pipe. A program that has one end of a pipe can hold its lock for
 * as long as it likes: by `splice` or `sendfile` from a socket with nothing to read, or as it writes memory that does
 * not come. Whoever reads, writes, opens or closes the other end waits in the kernel, whatever it has asked for:
 * `O_NONBLOCK` does not help, and not even SIGKILL ends that. So a thread of the agent watches where its first thread
 * waits, and finds by the descriptor whose pipe it is.
 */
export interface PipeWatch {
  /** These are the descriptors of our ends. Answers how to say that all of them are closed. */
  add(holder: Holder, descriptors: readonly number[], onHeld: (error: HeldPipe) => void): () => void
  /** Opens or closes pipes that somebody else has already. `act` must do nothing else that could wait. */
  during<T>(holder: Holder, files: readonly string[], act: () => T): T
  close(): Promise<void>
}

/** Who is at the other end, with all that descends from it. */
interface Holder {
  /** Process group. */
  group: number
  /** The user of this run alone. */
  uid: number | undefined
  /** Its cgroup. */
  folder: string | undefined
}

/** On average. A look takes a tenth of a millisecond. */
const LOOK_MS = 400
/** The agent stands still: so long a write may take whose memory is on a disk, which holds the lock as well. */
const PATIENCE_MS = 700
/** While the agent is under pressure: others of the same kind may come behind. */
const HASTY_MS = 300
/**
 * Processes of a program can hand the lock to one another, so that the agent executes for a moment in between. A look
 * that finds it waiting adds one to the pressure, any other takes one away. So it may wait half of the time, far more
 * than it does for programs that print without end: of forty of them at once on two cores, 1 % of the looks.
 */
const MOST_PRESSURE = 12
const OF_THREAD = { lookMs: LOOK_MS, patienceMs: PATIENCE_MS, hastyMs: HASTY_MS, mostPressure: MOST_PRESSURE }

interface PipeWatchOptions {
  log: (name: string, facts?: Record<string, unknown>) => void
}

type Order = { add: Held & { descriptors: readonly number[] } } | { begin: Held } | { end: true } | { forget: number }

interface Held extends Holder {
  number: number
  pipes: Pick<Stats, 'dev' | 'ino'>[]
}

interface Found {
  number: number
  group: number
  uid: number | undefined
  waitedMs: number
}

export function watchPipes(options: PipeWatchOptions): PipeWatch {
  return process.platform === 'linux' ? new WatchingThread(options) : NO_WATCH
}

/** Where the kernel tells nothing of threads. */
const NO_WATCH: PipeWatch = { add: () => () => {}, during: (_holder, _files, act) => act(), close: async () => {} }

class WatchingThread implements PipeWatch {
  readonly #log: PipeWatchOptions['log']
  readonly #thread: Worker
  readonly #onHeld = new Map<number, (error: HeldPipe) => void>()
  #numbers = 0

  constructor({ log }: PipeWatchOptions) {
    this.#log = log
    this.#thread = new Worker(PIPE_WATCH_SCRIPT, {
      eval: true,
      workerData: OF_THREAD,
      resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 1 },
    })
    this.#thread.on('message', (found: Found) => this.#found(found))
    // Programs go on, and what one could do to its agent is told.
    this.#thread.on('error', (error) => log('pipes.unwatched', { error }))
    this.#thread.unref()
  }

  add(holder: Holder, descriptors: readonly number[], onHeld: (error: HeldPipe) => void): () => void {
    const number = this.#number()
    this.#onHeld.set(number, onHeld)
    const pipes = descriptors.map((fd) => identityOf(fstatSync(fd)))
    this.#tell({ add: { ...holder, number, pipes, descriptors } })
    return () => {
      this.#onHeld.delete(number)
      this.#tell({ forget: number })
    }
  }

  during<T>(holder: Holder, files: readonly string[], act: () => T): T {
    // Some may be gone by now.
    const found = files.flatMap((file) => statSync(file, { throwIfNoEntry: false }) ?? [])
    const pipes = found.map(identityOf)
    this.#tell({ begin: { ...holder, number: this.#number(), pipes } })
    try {
      return act()
    } finally {
      this.#tell({ end: true })
    }
  }

  #number(): number {
    return (this.#numbers += 1)
  }

  #tell(order: Order): void {
    this.#thread.postMessage(order)
  }

  #found({ number, group, uid, waitedMs }: Found): void {
    this.#log('process.held-pipe', { pid: group, ...(uid !== undefined && { uid }), waitedMs: Math.round(waitedMs) })
    this.#onHeld.get(number)?.(new HeldPipe(waitedMs))
  }

  async close(): Promise<void> {
    await this.#thread.terminate()
  }
}

const identityOf = ({ dev, ino }: Stats) => ({ dev, ino })
