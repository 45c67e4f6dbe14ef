import { pause } from '@windlass/shared/time.ts'
import type { Pace } from '../pace.ts'
import { TRY_AGAIN } from './close-codes.ts'
import { isTooMuchOfOrg, newLoad } from './backlog.ts'

/** The frames of one connection that wait. */
export interface WaitingFrames {
  /** Whether its next entries may be read: those under way are few enough. */
  mayGoOn(): boolean
  /** Reads a large frame, or some small ones; or begins a piece of a large one. */
  step(isUrgent: boolean): void
  /** Takes its turns again. */
  wake(): void
  close(code: number, reason: string): void
}

/** A small frame is read in 0.2 ms. */
export const SMALL_CHARS = 16 * 1024
/** So much of an org is read as it comes, in one turn of the event loop. */
const TURN_CHARS = 64 * 1024
/** A piece that took longer than this is followed by a rest of the same length: an org has half of the event loop. */
const SHORT_MS = 1
const TOO_MUCH = 'the agents of this org have sent more than may wait; connect again'

/** A frame that was read and is not answered yet. */
export interface Open {
  runner: FramesOfRunner
  chars: number
  weight: number
  isEntries: boolean
  /** Pieces that have not ended. */
  left: number
  /** By `performance.now()`. */
  begunAt: number
  /** It counts apart, so that others are read meanwhile. */
  isLate: boolean
}

/** An agent, over all its connections. */
export class FramesOfRunner {
  readonly load = newLoad()
  /** Characters that nobody has read yet. */
  unread = 0
  /** Of what was read and is not answered. What is late counts apart. */
  weight = 0
  lateWeight = 0
  readonly queues = new Set<WaitingFrames>()
}

export class FramesOfOrg {
  readonly id: string
  /** From when on what is not answered is late. */
  readonly lateMs: number
  readonly load = newLoad()
  weight = 0
  lateWeight = 0
  /** Frames that were read and are not answered, in the order of their beginnings. */
  readonly open = new Set<Open>()
  /** The next look for late ones. */
  look: NodeJS.Timeout | undefined
  readonly runners = new Map<string, FramesOfRunner>()
  /** Queues in the order of their turns. */
  readonly urgent = new Set<WaitingFrames>()
  readonly entries = new Set<WaitingFrames>()
  isRunning = false
  wasUrgent = false
  /** What was read as it came, and in which turn of the event loop. */
  readChars = 0
  readIn = 0

  constructor(id: string, lateMs: number) {
    this.id = id
    this.lateMs = lateMs
  }
}

/** Reads what waits, org by org. */
export class FrameTurns {
  readonly #pace: Pace
  readonly #forget: (org: FramesOfOrg) => void
  #turn = 0
  #isCounting = false

  constructor(pace: Pace, forget: (org: FramesOfOrg) => void) {
    this.#pace = pace
    this.#forget = forget
  }

  /** Whether so much more may be read of this org in this turn of the event loop, which is counted then. */
  mayReadNow(org: FramesOfOrg, chars: number): boolean {
    if (!this.#isCounting) {
      this.#isCounting = true
      setImmediate(() => {
        this.#isCounting = false
        this.#turn++
      })
    }
    if (org.readIn !== this.#turn) org.readChars = 0
    org.readIn = this.#turn
    if (chars > SMALL_CHARS || org.readChars + chars > TURN_CHARS) return false
    org.readChars += chars
    return true
  }

  wake(org: FramesOfOrg): void {
    if (org.isRunning) return
    org.isRunning = true
    void this.#run(org)
  }

  forget(org: FramesOfOrg): void {
    this.#forget(org)
  }

  async #run(org: FramesOfOrg): Promise<void> {
    while (nextOf(org)) {
      await this.#pace.next(org.id)
      const startedAt = performance.now()
      const next = nextOf(org)
      next?.queue.step(next.isUrgent)
      const tookMs = performance.now() - startedAt
      if (tookMs > SHORT_MS) await pause(tookMs)
    }
    org.isRunning = false
  }
}

/** Heartbeats and the like come first, but entries have every second turn. */
function nextOf(org: FramesOfOrg): { queue: WaitingFrames; isUrgent: boolean } | undefined {
  const [urgent] = org.urgent
  if (urgent && !org.wasUrgent) return { queue: urgent, isUrgent: true }
  for (const queue of org.entries) {
    if (queue.mayGoOn()) return { queue, isUrgent: false }
    // It comes back when something of it is committed.
    org.entries.delete(queue)
  }
  return urgent && { queue: urgent, isUrgent: true }
}

/** Cuts off who has sent most that nobody has read, until there is room. Who waits for acknowledgements comes last. */
export function relieve(org: FramesOfOrg): void {
  while (isTooMuchOfOrg(org.load)) {
    let greatest: FramesOfRunner | undefined
    for (const runner of org.runners.values()) if (runner.unread > (greatest?.unread ?? 0)) greatest = runner
    if (!greatest) return
    for (const queue of greatest.queues) queue.close(TRY_AGAIN, TOO_MUCH)
  }
}
