import { fstatSync, statSync, type Stats } from 'node:fs'
import { Worker } from 'node:worker_threads'
import { MOUNT_MS, OTHERS_MS, type RunUsers } from '../../isolation/fuse.ts'
import { toolPath } from '../../isolation/tools.ts'
import type { ProcessMark } from '../../os/process-id.ts'
import { HeldFile, HeldPipe } from '../program/held-pipe.ts'
import { PIPE_WATCH_SCRIPT } from './pipe-watch-script.ts'

/**
 * Ends programs that keep their agent waiting over a pipe. A program that has one end of a pipe can hold its lock for
 * as long as it likes: by `splice` or `sendfile` from a socket with nothing to read, or as it writes memory that does
 * not come. Whoever reads, writes, opens or closes the other end waits in the kernel, whatever it has asked for:
 * `O_NONBLOCK` does not help, and not even SIGKILL ends that. So a thread of the agent watches where its first thread
 * waits, and finds by the descriptor whose pipe it is. Any other lock that is held for a file system of a run's user
 * counts as well, see `stall-watch-script.ts`.
 */
export interface PipeWatch {
  /** These are the descriptors of our ends. Answers how to say that all of them are closed. */
  add(holder: Holder, descriptors: readonly number[], onHeld: OnHeld): () => void
  /** All in this process group, and what has left it, ends with this process. */
  addInit(group: number, init: ProcessMark): void
  /** Opens or closes pipes that somebody else has already. `act` must do nothing else that could wait. */
  during<T>(holder: Holder, files: readonly string[], act: () => T): T
  close(): Promise<void>
}

type OnHeld = (error: HeldPipe | HeldFile) => void

/** Who is at the other end, with all that descends from it. */
interface Holder {
  /** Process group. */
  group: number
  /** The user of this run alone. */
  uid: number | undefined
  /** Its cgroup. */
  folder: string | undefined
}

/** On average. A look takes half a millisecond, for eleven tasks. */
const LOOK_MS = 400
/** The thread has ended by a fault of ours, or for want of memory. */
const RESTART_MS = 1_000
/** A search goes on for so long between two looks. */
const SLICE_MS = 20
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
const OF_LOOKS = {
  lookMs: LOOK_MS,
  sliceMs: SLICE_MS,
  patienceMs: PATIENCE_MS,
  hastyMs: HASTY_MS,
  mostPressure: MOST_PRESSURE,
}
/** A task of the agent stands still: on a slow disk it may as well, so a file system of a run has to be awaited too. */
const STALL_MS = 1_500
/** After the file systems that were awaited all the time were ended it stands still. */
const LONG_STALL_MS = 5_000
const OF_STALLS = { stallMs: STALL_MS, longStallMs: LONG_STALL_MS }
const OF_FUSE = { othersMs: PATIENCE_MS + OTHERS_MS, mountMs: MOUNT_MS }

interface PipeWatchOptions {
  log: (name: string, facts?: Record<string, unknown>) => void
  runs: RunUsers | null
}

interface Added extends Held {
  descriptors: readonly number[]
  init?: ProcessMark
}

type Order =
  | { add: Added }
  | { init: { number: number; of: ProcessMark } }
  | { begin: Held }
  | { end: true }
  | { forget: number }

interface Held extends Holder {
  number: number
  pipes: Pick<Stats, 'dev' | 'ino'>[]
}

interface Known {
  order: { add: Added }
  onHeld: OnHeld
}

interface Found {
  number: number
  group: number
  uid: number | undefined
  waitedMs: number
  held: 'pipe' | 'file'
}

export function watchPipes(options: PipeWatchOptions): PipeWatch {
  return process.platform === 'linux' ? new WatchingThread(options) : NO_WATCH
}

/** Where the kernel tells nothing of threads. */
const NO_WATCH: PipeWatch = {
  add: () => () => {},
  addInit: () => {},
  during: (_holder, _files, act) => act(),
  close: async () => {},
}

class WatchingThread implements PipeWatch {
  readonly #log: PipeWatchOptions['log']
  readonly #runs: RunUsers | null
  readonly #holders = new Map<number, Known>()
  #thread: Worker
  #numbers = 0
  #isClosed = false

  constructor({ log, runs }: PipeWatchOptions) {
    this.#log = log
    this.#runs = runs
    this.#thread = this.#start()
  }

  #start(): Worker {
    const range = this.#runs && { first: this.#runs.first, last: this.#runs.last }
    const thread = new Worker(PIPE_WATCH_SCRIPT, {
      eval: true,
      workerData: { ...OF_LOOKS, ...OF_STALLS, ...OF_FUSE, mount: toolPath('mount') ?? 'mount', runs: range },
      resourceLimits: { maxOldGenerationSizeMb: 16, maxYoungGenerationSizeMb: 1 },
    })
    thread.on('message', (found: Found | { owner: number }) => {
      if ('owner' in found) this.#runs?.onEnded(found.owner)
      else this.#found(found)
    })
    thread.on('error', (error) => this.#startAgain(error))
    thread.unref()
    return thread
  }

  /** Programs go on meanwhile, and what one could do to its agent is told. */
  #startAgain(error: unknown): void {
    this.#log('pipes.unwatched', { error })
    const timer = setTimeout(() => {
      if (this.#isClosed) return
      this.#thread = this.#start()
      for (const { order } of this.#holders.values()) this.#tell(order)
    }, RESTART_MS)
    timer.unref()
  }

  add(holder: Holder, descriptors: readonly number[], onHeld: OnHeld): () => void {
    const number = this.#number()
    const pipes = descriptors.map((fd) => identityOf(fstatSync(fd)))
    const order = { add: { ...holder, number, pipes, descriptors } }
    this.#holders.set(number, { order, onHeld })
    this.#tell(order)
    return () => {
      this.#holders.delete(number)
      this.#tell({ forget: number })
    }
  }

  addInit(group: number, init: ProcessMark): void {
    for (const [number, { order }] of this.#holders) {
      if (order.add.group !== group) continue
      order.add.init = init
      this.#tell({ init: { number, of: init } })
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

  #found({ number, group, uid, waitedMs, held }: Found): void {
    const facts = { pid: group, ...(uid !== undefined && { uid }), waitedMs: Math.round(waitedMs) }
    this.#log(`process.held-${held}`, facts)
    this.#holders.get(number)?.onHeld(held === 'pipe' ? new HeldPipe(waitedMs) : new HeldFile(waitedMs))
  }

  async close(): Promise<void> {
    this.#isClosed = true
    await this.#thread.terminate()
  }
}

const identityOf = ({ dev, ino }: Stats) => ({ dev, ino })
