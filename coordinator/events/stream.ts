import { Fault } from '@windlass/shared/errors.ts'
import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import { type Channel, EVENT_PAGE_BYTES } from '@windlass/shared/model/event.ts'
import { isFinal } from '@windlass/shared/model/run.ts'
import type { Db } from '../db/client.ts'
import type { Tails } from './live.ts'
import { eventJson, isWanted, type PageText } from './page.ts'
import * as store from './store.ts'

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

export interface LogQuery {
  run: RunId
  since: number
  channels: Channel[]
}

export interface PageQuery extends LogQuery {
  limit: number
  /** How long to wait for an event where the page would be empty. */
  waitMs: number
}

/** A page of the log, as JSON text. `done` when the run has finished and the page reaches the log's end. */
export async function snapshot(
  deps: { db: Db; tails: Tails; turns: { orgCalls: Turns } },
  orgId: OrgId,
  query: PageQuery,
  client: { readonly gone: AbortSignal },
): Promise<string> {
  // A turn for each look: hundreds may wait between the two.
  const look = () => deps.turns.orgCalls.run(orgId, () => read(deps, orgId, query))
  const page = await look()
  if (page.events.length > 0 || page.done || query.waitMs === 0) return pageJson(page)
  // Nobody leaves a page that came at once, so only here is anybody looked after.
  const came = await news(deps, { ...query, orgId, after: page.cursor }, client.gone)
  return pageJson(came ? await look() : page)
}

/** Where the reads of an org take turns. */
interface Turns {
  run<T>(orgId: string, act: () => Promise<T>): Promise<T>
}

interface Snapshot {
  events: store.StoredEvent[]
  done: boolean
  /** Of the last event that was in the log before the page was read. */
  cursor: number
}

async function read(deps: { db: Db }, orgId: OrgId, query: PageQuery): Promise<Snapshot> {
  const position = await store.position(deps.db, orgId, query.run)
  if (!position) throw new Fault('NOT_FOUND', { run: query.run })
  const { events, isFull } = await store.after(deps.db, query.run, { ...query, bytes: EVENT_PAGE_BYTES })
  const isAtEnd = !isFull || events.at(-1)?.cursor === position.cursor
  return { events, done: isFinal(position.status) && isAtEnd, cursor: position.cursor }
}

function pageJson({ events, done }: Snapshot): string {
  return `{"events":[${events.map(eventJson).join(',')}],"done":${done}}`
}

/** True when there is an event that the reader wants, or the run has finished; false when the time is up or he has gone. */
async function news(
  deps: { tails: Tails },
  query: PageQuery & { orgId: OrgId; after: number },
  gone: AbortSignal,
): Promise<boolean> {
  const wanted = isWanted(query.channels)
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const giveUp = () => resolve(false)
  const timer = setTimeout(giveUp, query.waitMs)
  gone.addEventListener('abort', giveUp, { once: true })
  // Joining reads what was committed since the page was; from there on each commit rings.
  const tail = deps.tails.follow({ id: query.run, orgId: query.orgId }, Math.max(query.after, query.since), {
    take(page, since, done) {
      if (done || page.after(since).some(wanted)) resolve(true)
      return undefined
    },
  })
  if (gone.aborted) giveUp()
  try {
    return await promise
  } finally {
    clearTimeout(timer)
    gone.removeEventListener('abort', giveUp)
    tail.leave()
  }
}

/** Bounds what lies here for readers. */
interface Unread {
  /** Counts these bytes until what it answers is called; whoever is over the bound is cut. */
  hold(orgId: string, bytes: number, cut: () => void): () => void
}

type StreamDeps = { tails: Tails; unread: Unread }

/** The log from a cursor on, then what follows, until the run has finished: what is to be done with the sink. */
export async function liveStream(
  deps: StreamDeps & { db: Db },
  orgId: OrgId,
  query: LogQuery,
): Promise<(sink: SseSink) => Promise<void>> {
  if (!(await store.position(deps.db, orgId, query.run))) throw new Fault('NOT_FOUND', { run: query.run })
  return (sink) => pour(deps, orgId, query, sink)
}

function pour({ tails, unread }: StreamDeps, orgId: OrgId, query: LogQuery, sink: SseSink): Promise<void> {
  const { promise: ended, resolve: end } = Promise.withResolvers<void>()
  let isFull = false
  const heartbeats = setInterval(() => sayNothing('heartbeat'), HEARTBEAT_MS)
  const tail = tails.follow({ id: query.run, orgId }, query.since, {
    take(page, since, done) {
      const taken = put(page.text(since, query.channels))
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
    const release = unread.hold(orgId, bytes, () => sink.cut())
    await sink.drained()
    isFull = false
    release()
  }

  function sayNothing(comment: string) {
    if (!isFull) void put({ text: `: ${comment}\n\n`, bytes: comment.length + 4 })
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
