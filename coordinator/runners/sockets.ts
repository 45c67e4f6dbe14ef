import type { CoordinatorFrame } from '@windlass/shared/wire/agent.ts'
import type { AgentSocket } from './agent-socket.ts'

/** The agents that are connected to this coordinator. */
export interface Sockets {
  /** An agent has one socket: an older one of the same runner is closed. */
  join(runnerId: string, socket: AgentSocket): void
  leave(runnerId: string, socket: AgentSocket): void
  /** False: it is not connected here. */
  tell(runnerId: string, frame: CoordinatorFrame): boolean
  ids(): string[]
}

/** WebSocket close code of our own: another connection of the same runner has taken over. */
const REPLACED = 4001

export function createSockets(): Sockets {
  const sockets = new Map<string, AgentSocket>()
  return {
    join(runnerId, socket) {
      sockets.get(runnerId)?.close(REPLACED, 'another connection of this runner has taken over')
      sockets.set(runnerId, socket)
    },
    leave(runnerId, socket) {
      if (sockets.get(runnerId) === socket) sockets.delete(runnerId)
    },
    tell(runnerId, frame) {
      const socket = sockets.get(runnerId)
      socket?.send(JSON.stringify(frame))
      return socket !== undefined
    },
    ids: () => [...sockets.keys()],
  }
}
