import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '@windlass/shared/log.ts'
import type { CoordinatorFrame } from '@windlass/shared/wire/agent.ts'
import type { RunnerIdentity } from '../actor.ts'
import { type Connects, createConnects } from '../limits/connects.ts'
import { createPace, type Pace } from '../pace.ts'
import { createPerMinute, type PerMinute } from '../limits/per-minute.ts'
import { createRounds, type Rounds } from '../limits/rounds.ts'
import { createSeats, type Seats } from '../limits/seats.ts'
import { type Accepting, createAccepting } from './accepting.ts'
import { POLICY, REPLACED, TRY_AGAIN } from './close-codes.ts'
import type { AgentSocket } from './agent-socket.ts'
import { createDoubts, type Doubts } from './doubts.ts'
import { createFrameQueues, type FrameQueues } from './frame-queue.ts'
import { createGreetings, type Greetings } from './greetings.ts'
import { OpenSockets } from './open-sockets.ts'
import { createUnreadFrames } from './unread-frames.ts'

export type RefusalCode = Extract<CoordinatorFrame, { t: 'refused' }>['code']

/** The agents that are connected to this coordinator. */
export interface Sockets {
  readonly size: number
  /** What they have sent and nobody has read. */
  readonly frames: FrameQueues
  /** Looks for what agents have not been given: one of a runner and two of an org at once. */
  readonly wakes: Rounds
  /** Looks for what of theirs is to be cancelled, in the same way. */
  readonly cancels: Rounds
  /** How often they connect. */
  readonly connects: Connects
  /** Turns of those that have. */
  readonly greetings: Greetings
  /** Seats for renewing tokens: one of an org. */
  readonly renewals: Seats
  /** Seats for storing what agents say of themselves: one of an org, two of all. */
  readonly selfNotes: Seats
  /** What they accept. */
  readonly accepting: Accepting
  /** Their words that they are being stopped. */
  readonly leaves: PerMinute
  /** Entries of the audit log about starts without a name. */
  readonly takeovers: PerMinute
  /** Whether those that were started anew are clones. */
  readonly doubts: Doubts
  /** By which their large frames are read, and tokens minted. */
  readonly pace: Pace
  /** A connection that has said nothing yet. Answers it as it is to be used, which may end it sooner. */
  open(runner: Pick<RunnerIdentity, 'id' | 'orgId'>, socket: AgentSocket): AgentSocket
  /** An agent has one socket: an older one of the same runner is closed. */
  join(runner: Pick<RunnerIdentity, 'id' | 'orgId'>, socket: AgentSocket): void
  leave(runnerId: string, socket: AgentSocket): void
  /** False: it is not connected here. */
  tell(runnerId: string, frame: CoordinatorFrame): boolean
  /**
   * Of frames above 64 KiB an agent has one on its way: what stands behind it, as the answer to a heartbeat, has to
   * wait. False: there is one, or it is not connected here, and nothing was sent.
   */
  tellLarge(runnerId: string, frame: CoordinatorFrame): boolean
  isReadingLarge(runnerId: string): boolean
  /** Agents that are told more when they have read what is on its way; `isAgain`: and then from the first on. */
  readonly behind: Map<string, { isAgain: boolean }>
  /** Resolves when none is on its way. */
  largeRead(runnerId: string): Promise<void>
  /**
   * The end of its connection, with a sentence for its log. It has 5 s to say what became of its runs; nothing else is taken from it
   * meanwhile.
   */
  refuse(runnerId: string, code: RefusalCode, message: string): void
  isRefused(socket: AgentSocket): boolean
  /** Ends all connections that are there, with a reason; the agents come again. */
  letGo(reason: string): Promise<void>
  ids(): string[]
  /** Undefined: it is not connected here. */
  orgOf(runnerId: string): string | undefined
  close(): void
}

/** What it runs is to be dead by then in any case. */
const LAST_ENTRIES_MS = 5000
/** RFC 6455 leaves 123 bytes for a reason; the whole sentence is in the frame. */
const REASON_CHARS = 100
/** Of all that are let go. Those come again within 250 ms, and 400 a second are taken easily. */
const LET_GO = { atOnce: 40, everyMs: 100 }
/** Of one runner in a minute. Each, and the start that follows it, writes into the audit log. */
const MOST_LEAVES = 10

type ByRunner = Map<string, { socket: AgentSocket; orgId: string }>

async function letGo(sockets: ByRunner, reason: string): Promise<void> {
  const all = [...sockets]
  while (all.length > 0) {
    for (const [id, { socket }] of all.splice(0, LET_GO.atOnce))
      if (sockets.get(id)?.socket === socket) socket.close(TRY_AGAIN, reason)
    await delay(LET_GO.everyMs, undefined, { ref: false })
  }
}

export function createSockets(log: Log): Sockets {
  const sockets: ByRunner = new Map()
  const refused = new Map<AgentSocket, NodeJS.Timeout>()
  /** On their way. */
  const large = new Map<AgentSocket, Promise<void>>()

  const pace = createPace()
  const open = new OpenSockets({ unread: createUnreadFrames({ log }) })

  return {
    pace,
    leaves: createPerMinute(MOST_LEAVES),
    takeovers: createPerMinute(1),
    doubts: createDoubts(),
    connects: createConnects(),
    greetings: createGreetings(),
    accepting: createAccepting(),
    renewals: createSeats({ org: 1, all: 4 }),
    selfNotes: createSeats({ org: 1, all: 2 }),
    wakes: createRounds(createSeats({ org: 2, all: 6 })),
    cancels: createRounds(createSeats({ org: 1, all: 3 })),
    frames: createFrameQueues(pace),
    get size() {
      return sockets.size
    },
    open: (runner, socket) => open.add(runner, socket),
    join({ id, orgId }, socket) {
      open.forget(id, socket)
      sockets.get(id)?.socket.close(REPLACED, 'another connection of this runner has taken over')
      sockets.set(id, { socket, orgId })
    },
    leave(runnerId, socket) {
      clearTimeout(refused.get(socket))
      refused.delete(socket)
      if (sockets.get(runnerId)?.socket === socket) sockets.delete(runnerId)
    },
    tell(runnerId, frame) {
      const socket = sockets.get(runnerId)?.socket
      socket?.send(JSON.stringify(frame))
      return socket !== undefined
    },
    tellLarge(runnerId, frame) {
      const socket = sockets.get(runnerId)?.socket
      if (!socket || large.has(socket)) return false
      socket.send(JSON.stringify(frame))
      large.set(
        socket,
        socket.whenRead().finally(() => large.delete(socket)),
      )
      return true
    },
    behind: new Map(),
    isReadingLarge(runnerId) {
      const socket = sockets.get(runnerId)?.socket
      return socket !== undefined && large.has(socket)
    },
    async largeRead(runnerId) {
      const socket = sockets.get(runnerId)?.socket
      if (socket) await large.get(socket)
    },
    refuse(runnerId, code, message) {
      const socket = sockets.get(runnerId)?.socket
      if (!socket || refused.has(socket)) return
      socket.send(JSON.stringify({ t: 'refused', code, message } satisfies CoordinatorFrame))
      const cut = () => socket.close(POLICY, message.slice(0, REASON_CHARS))
      refused.set(socket, setTimeout(cut, LAST_ENTRIES_MS))
    },
    letGo: (reason) => letGo(sockets, reason),
    isRefused: (socket) => refused.has(socket),
    ids: () => [...sockets.keys()],
    orgOf: (runnerId) => sockets.get(runnerId)?.orgId,
    close() {
      for (const timer of refused.values()) clearTimeout(timer)
    },
  }
}
