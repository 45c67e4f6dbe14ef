import type { AgentSocket } from './agent-socket.ts'

/** Connections of a runner that were not let in: of ours there are two at most, of copies of its folder some more. */
const MOST_NEW = 12
/** So many are ended with a word within `ENDED_MS`, the others without. */
const MOST_ENDED = 16
/** The library gives up by then what we have ended and the agent leaves open. */
const ENDED_MS = 40_000

/**
 * The connections of each runner. What has come of a message that has no end yet lies in the library, 16 MiB of it,
 * where nobody counts it; and it stays there when we end a connection whose agent leaves it open. So both are bounded
 * by their number. The one that speaks for the runner is never cut for the others.
 */
export class OpenSockets {
  /** By runner, the oldest first. */
  readonly #new = new Map<string, Set<AgentSocket>>()
  /** By runner: when those that we have ended are given up. Whose last one is given up first stands first. */
  readonly #ended = new Map<string, number[]>()
  readonly #now: () => number

  constructor(now: () => number = () => performance.now()) {
    this.#now = now
  }

  /** Answers the socket as everybody is to use it. */
  add(runnerId: string, socket: AgentSocket): AgentSocket {
    let isOver = false
    const bounded: AgentSocket = {
      send: (text) => socket.send(text),
      cut: () => socket.cut(),
      close: (code, reason) => {
        if (!isOver && !this.#mayEnd(runnerId)) socket.cut()
        else socket.close(code, reason)
      },
      onMessage: (listener) => socket.onMessage(listener),
      onClose: (listener) => socket.onClose(listener),
    }
    socket.onClose(() => {
      isOver = true
      this.forget(runnerId, bounded)
    })
    const all = this.#new.get(runnerId) ?? new Set()
    this.#new.set(runnerId, all.add(bounded))
    const [oldest] = all
    if (all.size > MOST_NEW) oldest?.cut()
    return bounded
  }

  /** It is not one of the new ones any more: it was let in, or is gone. */
  forget(runnerId: string, socket: AgentSocket): void {
    const all = this.#new.get(runnerId)
    all?.delete(socket)
    if (all?.size === 0) this.#new.delete(runnerId)
  }

  /** Whether one more may lie here after its end, which is counted then. */
  #mayEnd(runnerId: string): boolean {
    const now = this.#now()
    for (const [id, untils] of this.#ended) {
      if (untils.at(-1)! > now) break
      this.#ended.delete(id)
    }
    const ended = (this.#ended.get(runnerId) ?? []).filter((until) => until > now)
    if (ended.length >= MOST_ENDED) return false
    this.#ended.delete(runnerId)
    this.#ended.set(runnerId, [...ended, now + ENDED_MS])
    return true
  }
}
