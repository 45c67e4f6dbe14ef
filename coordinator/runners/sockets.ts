import { OLDEST_PROTOCOL, type CoordinatorFrame } from '@windlass/shared/wire/agent.ts'
import { createPace, type Pace } from '../limits/pace.ts'
import type { AgentSocket } from './agent-socket.ts'
import { createFrameQueues, type FrameQueues } from './frame-queue.ts'
import { OpenSockets } from './open-sockets.ts'

export type RefusalCode = Extract<CoordinatorFrame, { t: 'refused' }>['code']

/** The agents that are connected to this coordinator. */
export interface Sockets {
  readonly size: number
  /** What they have sent and nobody has read. */
  readonly frames: FrameQueues
  /** By which their large frames are read. */
  readonly pace: Pace
  /** A connection that has said nothing yet. Answers it as it is to be used, which may end it sooner. */
  open(runnerId: string, socket: AgentSocket): AgentSocket
  /** An agent has one socket: an older one of the same runner is closed. */
  join(runnerId: string, socket: AgentSocket, protocol: number): void
  leave(runnerId: string, socket: AgentSocket): void
  /** False: it is not connected here. */
  tell(runnerId: string, frame: CoordinatorFrame): boolean
  /**
   * The end of its connection, with a sentence for its log. It has 5 s to say what became of its runs; nothing else is taken from it
   * meanwhile.
   */
  refuse(runnerId: string, code: RefusalCode, message: string): void
  isRefused(socket: AgentSocket): boolean
  ids(): string[]
  close(): void
}

/** WebSocket close code of our own: another connection of the same runner has taken over. */
const REPLACED = 4001
/** RFC 6455's for an end that breaks the rules. */
const POLICY = 1008
/** What it runs is to be dead by then in any case. */
const LAST_WORDS_MS = 5000
/** RFC 6455 leaves 123 bytes for a reason; the whole sentence is in the frame. */
const REASON_CHARS = 100

export function createSockets(): Sockets {
  const sockets = new Map<string, { socket: AgentSocket; protocol: number }>()
  const refused = new Map<AgentSocket, NodeJS.Timeout>()

  const pace = createPace()
  const open = new OpenSockets()

  return {
    pace,
    frames: createFrameQueues(pace),
    get size() {
      return sockets.size
    },
    open: (runnerId, socket) => open.add(runnerId, socket),
    join(runnerId, socket, protocol) {
      open.forget(runnerId, socket)
      sockets.get(runnerId)?.socket.close(REPLACED, 'another connection of this runner has taken over')
      sockets.set(runnerId, { socket, protocol })
    },
    leave(runnerId, socket) {
      clearTimeout(refused.get(socket))
      refused.delete(socket)
      if (sockets.get(runnerId)?.socket === socket) sockets.delete(runnerId)
    },
    tell(runnerId, frame) {
      const found = sockets.get(runnerId)
      found?.socket.send(JSON.stringify(frame))
      return found !== undefined
    },
    refuse(runnerId, code, message) {
      const found = sockets.get(runnerId)
      if (!found || refused.has(found.socket)) return
      const { socket, protocol } = found
      socket.send(JSON.stringify({ t: 'refused', code, message } satisfies CoordinatorFrame))
      const cut = () => socket.close(POLICY, message.slice(0, REASON_CHARS))
      // One of the protocol before goes on until it is cut off.
      refused.set(socket, setTimeout(cut, protocol > OLDEST_PROTOCOL ? LAST_WORDS_MS : 0))
    },
    isRefused: (socket) => refused.has(socket),
    ids: () => [...sockets.keys()],
    close() {
      for (const timer of refused.values()) clearTimeout(timer)
    },
  }
}
