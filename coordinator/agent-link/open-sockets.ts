import { partOf } from '@windlass/shared/wire/parts.ts'
import type { RunnerIdentity } from '../actor.ts'
import type { AgentSocket } from './agent-socket.ts'
import { createUnreadFrames, type UnreadFrames } from './unread-frames.ts'

/** Connections of a runner that were not let in: of ours there are two at most, of copies of its folder some more. */
const MOST_NEW = 12
/** Connections of an org that have said no whole frame yet. Agents say hello with the first packet. */
const MOST_SILENT = 500
/** By then an agent has said hello: over the slowest line it takes a second. */
const HELLO_MS = 30_000
/** So many are ended with a word within `ENDED_MS`, the others without. */
const MOST_ENDED = { runner: 16, org: 500 }
/** The library gives up by then what we have ended and the agent leaves open. */
const ENDED_MS = 40_000

export interface OpenSocketsOptions {
  unread?: UnreadFrames
  now?: () => number
}

/**
 * The connections of each runner. What has come of a message that has no end yet lies in the library, 256 KiB of it,
 * where nobody counts it; and it stays there when we end a connection whose agent leaves it open. So both are bounded
 * by their number. The one that speaks for the runner is never cut for the others, but may be for what it does not
 * read.
 */
export class OpenSockets {
  /** By runner, the oldest first. */
  readonly #new = new Crowds(MOST_NEW)
  /** By org, likewise. */
  readonly #silent = new Crowds(MOST_SILENT)
  readonly #ended: { runner: Endings; org: Endings }
  readonly #unread: UnreadFrames

  constructor({ unread = createUnreadFrames(), now = () => performance.now() }: OpenSocketsOptions = {}) {
    this.#unread = unread
    this.#ended = { runner: new Endings(MOST_ENDED.runner, now), org: new Endings(MOST_ENDED.org, now) }
  }

  /** Answers the socket as everybody is to use it. */
  add({ id, orgId }: Pick<RunnerIdentity, 'id' | 'orgId'>, socket: AgentSocket): AgentSocket {
    let isOver = false
    const bounded: AgentSocket = {
      send: (text) => socket.send(text),
      cut: () => socket.cut(),
      close: (code, reason) => {
        if (!isOver && !this.#mayEnd(id, orgId)) socket.cut()
        else socket.close(code, reason)
      },
      onMessage: (listener) => socket.onMessage(listener),
      onUnread: (listener) => socket.onUnread(listener),
      whenRead: () => socket.whenRead(),
      onClose: (listener) => socket.onClose(listener),
    }
    const late = setTimeout(() => bounded.cut(), HELLO_MS).unref()
    socket.onMessage((message) => {
      if (partOf(message)?.isLast === false) return
      clearTimeout(late)
      this.#silent.delete(orgId, bounded)
    })
    socket.onUnread((bytes) => this.#unread.note(orgId, bounded, bytes))
    socket.onClose(() => {
      isOver = true
      clearTimeout(late)
      this.#silent.delete(orgId, bounded)
      this.forget(id, bounded)
    })
    this.#silent.add(orgId, bounded)
    this.#new.add(id, bounded)
    return bounded
  }

  /** It is not one of the new ones any more: it was let in, or is gone. */
  forget(runnerId: string, socket: AgentSocket): void {
    this.#new.delete(runnerId, socket)
  }

  /** Whether one more may lie here after its end, which is counted then. */
  #mayEnd(runnerId: string, orgId: string): boolean {
    const { runner, org } = this.#ended
    if (runner.isFull(runnerId) || org.isFull(orgId)) return false
    runner.add(runnerId)
    org.add(orgId)
    return true
  }
}

/** Sockets by whose they are. One too many cuts the oldest. */
class Crowds {
  readonly #most: number
  readonly #all = new Map<string, Set<AgentSocket>>()

  constructor(most: number) {
    this.#most = most
  }

  add(key: string, socket: AgentSocket): void {
    const all = this.#all.get(key) ?? new Set()
    this.#all.set(key, all.add(socket))
    const [oldest] = all
    if (!oldest || all.size <= this.#most) return
    this.delete(key, oldest)
    oldest.cut()
  }

  delete(key: string, socket: AgentSocket): void {
    const all = this.#all.get(key)
    all?.delete(socket)
    if (all?.size === 0) this.#all.delete(key)
  }
}

/** Connections that we have ended, until the library has given them up. */
class Endings {
  readonly #most: number
  readonly #now: () => number
  /** When they are given up. Whose last one is given up first stands first. */
  readonly #untils = new Map<string, number[]>()

  constructor(most: number, now: () => number) {
    this.#most = most
    this.#now = now
  }

  isFull(key: string): boolean {
    return this.#open(key).length >= this.#most
  }

  add(key: string): void {
    const now = this.#now()
    for (const [other, untils] of this.#untils) {
      if (untils.at(-1)! > now) break
      this.#untils.delete(other)
    }
    const open = this.#open(key)
    this.#untils.delete(key)
    this.#untils.set(key, [...open, now + ENDED_MS])
  }

  #open(key: string): number[] {
    const now = this.#now()
    return this.#untils.get(key)?.filter((until) => until > now) ?? []
  }
}
