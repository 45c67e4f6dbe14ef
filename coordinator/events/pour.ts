import type { OrgId } from '@windlass/shared/ids.ts'
import type { Channel } from '@windlass/shared/model/event.ts'
import type { LiveLog, Tails } from './live.ts'
import type { PageText } from './page.ts'

/** 15 s: proxies and clients take a silent stream for a dead one. */
const HEARTBEAT_MS = 15_000

/** Where a live stream is written. */
export interface SseSink {
  /** False: the reader is slow; wait for `drained` before the next write. */
  write(text: string): boolean
  /** Resolves when the buffer is empty again or the reader has gone. */
  drained(): Promise<void>
  close(): void
  /** Ends the connection at once, with all that its reader has not taken. */
  cut(): void
  gone: AbortSignal
}

/** Bounds what lies here for readers. */
interface Unread {
  /** Counts these bytes until what it answers is called; whoever is over the bound is cut. */
  hold(orgId: string, bytes: number, cut: () => void): () => void
}

export type PourDeps = { tails: Tails; unread: Unread }

/** What a reader has asked for. */
export interface Pouring {
  orgId: OrgId
  log: LiveLog
  since: number
  channels: readonly Channel[]
  /** Frames that stand before the first of the log. */
  first?: string
}

/** The log from a cursor on, then what follows, until it is over or its reader has gone. */
export function pour({ tails, unread }: PourDeps, asked: Pouring, sink: SseSink): Promise<void> {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  let isFull = false
  const heartbeats = setInterval(() => sayNothing('heartbeat'), HEARTBEAT_MS)
  if (asked.first !== undefined) say(asked.first)
  const tail = tails.follow(asked.log, asked.since, {
    take(page, since, done) {
      const taken = put(page.text(since, asked.channels))
      if (done) void (taken ?? Promise.resolve()).then(finish)
      return taken
    },
  })
  if (sink.gone.aborted) leave()
  else sink.gone.addEventListener('abort', leave, { once: true })
  sayNothing('connected')
  return ended

  /** Answers when the reader has taken it, if that is not at once. Nothing is written before. */
  function put({ text, bytes }: PageText): Promise<void> | undefined {
    if (text === '' || sink.gone.aborted) return undefined
    heartbeats.refresh()
    if (sink.write(text)) return undefined
    return untilTaken(bytes)
  }

  async function untilTaken(bytes: number): Promise<void> {
    isFull = true
    const release = unread.hold(asked.orgId, bytes, () => sink.cut())
    await sink.drained()
    isFull = false
    release()
  }

  /** Some bytes only, so that what comes next need not wait for them. */
  function say(text: string) {
    void put({ text, bytes: Buffer.byteLength(text) })
  }

  function sayNothing(comment: string) {
    if (!isFull) say(`: ${comment}\n\n`)
  }

  function finish() {
    if (!sink.gone.aborted) sink.write('event: done\ndata: {"done":true}\n\n')
    leave()
    sink.close()
  }

  function leave() {
    clearInterval(heartbeats)
    sink.gone.removeEventListener('abort', leave)
    tail.leave()
    end()
  }
}
