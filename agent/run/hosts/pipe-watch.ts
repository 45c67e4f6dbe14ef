import { fstatSync, statSync, type Stats } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { PIPE_WATCH_SCRIPT } from './pipe-watch-script.ts'

/**
 * Ends programs that keep their agent waiting over a pipe. A program that has one end of a pipe can hold its lock for
 * as long as it likes: by `splice` or `sendfile` from a socket with nothing to read, or as it writes memory that does
 * not come. Whoever reads, writes, opens or closes the other end waits in the kernel, whatever it has asked for:
 * `O_NONBLOCK` does not help, and not even SIGKILL ends that. So a thread of its own looks on, and finds by the
 * descriptor whose pipe it is.
 */
export interface PipeWatch {
  /** These are the descriptors of our ends. Answers how to say that all of them are closed. */
  add(holder: Holder, descriptors: readonly number[], onHeld: (error: HeldPipe) => void): () => void
  /** Opens or closes pipes that somebody else has already. `act` waits for nothing but for them. */
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

/** The program has kept the agent waiting, and is ended. */
export class HeldPipe extends Error {
  override readonly name = 'HeldPipe'
}

/** Enough for a write whose memory has to be read from a disk first, which holds the lock as well. */
const PATIENCE_MS = 700
/** After one was found: there may be others of the same kind. */
const ALERT = { alertMs: 250, alertForMs: 60_000 }
/** Each takes a tenth of a millisecond. What is found has been so for two looks more, or for one. */
const LOOK_MS = 400
/**
 * Processes of a program can hand the lock to one another, so that the agent executes for a moment in between. A look
 * that finds it waiting adds one, any other takes one away. So it may wait half of the time, far more than it does
 * for a program that prints without end and whose processor is taken from it while it holds the lock.
 */
const MOST_PRESSURE = 12

interface PipeWatchOptions {
  log: (name: string, facts?: Record<string, unknown>) => void
  patienceMs?: number
}

type Order = { add: Held & { descriptors: readonly number[] } } | { begin: Held } | { end: true } | { forget: number }

interface Held extends Holder {
  number: number
  pipes: Pick<Stats, 'dev' | 'ino'>[]
}

interface Found {
  number: number
  waitedMs: number
}

export function watchPipes(options: PipeWatchOptions): PipeWatch {
  return process.platform === 'linux' ? new WatchingThread(options) : NOBODY
}

/** Where the kernel tells nothing of threads. */
const NOBODY: PipeWatch = { add: () => () => {}, during: (_holder, _files, act) => act(), close: async () => {} }

class WatchingThread implements PipeWatch {
  readonly #log: PipeWatchOptions['log']
  readonly #thread: Worker
  readonly #onHeld = new Map<number, (error: HeldPipe) => void>()
  #numbers = 0

  constructor({ log, patienceMs = PATIENCE_MS }: PipeWatchOptions) {
    this.#log = log
    this.#thread = new Worker(PIPE_WATCH_SCRIPT, {
      eval: true,
      workerData: { lookMs: LOOK_MS, patienceMs, ...ALERT, mostPressure: MOST_PRESSURE },
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
    const pipes = files.map((file) => identityOf(statSync(file)))
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

  #found({ number, waitedMs }: Found): void {
    this.#log('process.held-pipe', { waitedMs: Math.round(waitedMs) })
    this.#onHeld.get(number)?.(new HeldPipe(reasonAfter(waitedMs)))
  }

  async close(): Promise<void> {
    await this.#thread.terminate()
  }
}

const identityOf = ({ dev, ino }: Stats) => ({ dev, ino })

const reasonAfter = (waitedMs: number) =>
  `The program kept its agent waiting for ${(waitedMs / 1000).toFixed(1)} s: it held the lock of a pipe that is its ` +
  'stdout, stderr or descriptor 3 or 4, as a splice or sendfile from a socket into one does. ' +
  'Copy what is to be printed by read and write.'
