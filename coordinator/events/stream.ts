import { Fault } from '@windlass/shared/errors.ts'
import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import { type Channel, CHANNELS, EVENT_PAGE_BYTES } from '@windlass/shared/model/event.ts'
import { isFinal } from '@windlass/shared/model/run.ts'
import type { LongCall, Revocable } from '../actor.ts'
import type { Db } from '../db/client.ts'
import { LIVE_PAGE, type LiveLog, type Tails } from './live.ts'
import { eventJson, isWanted, LogPage, sseFrame } from './page.ts'
import { pour, type PourDeps, type SseSink } from './pour.ts'
import * as store from './store.ts'

interface LogQuery {
  run: RunId
  since: number
  channels: Channel[]
}

export interface PageQuery extends LogQuery {
  limit: number
  /** So many at most, but for the first event; `EVENT_PAGE_BYTES` where nothing is said. */
  bytes?: number | undefined
  /** How long to wait for an event where the page would be empty. */
  waitMs: number
}

/** A page of the log, as JSON text. `done` when the run has finished and the page reaches the log's end. */
export async function snapshot(
  deps: { db: Db; tails: Tails; turns: { orgCalls: Turns } },
  query: PageQuery,
  client: LongCall & { readonly gone: AbortSignal },
): Promise<string> {
  const { orgId } = client.caller
  // A turn for each look: hundreds may wait between the two.
  const look = () => deps.turns.orgCalls.run(orgId, client, () => read(deps, orgId, query))
  const page = await look()
  if (page.events.length > 0 || page.done || query.waitMs === 0) return pageJson(page)
  // Nobody leaves a page that came at once, so only here is anybody looked after.
  const came = await news(deps, { ...query, orgId, after: page.cursor }, client.gone)
  if (!came) return pageJson(page)
  await client.stay()
  return pageJson(await look())
}

/** Where the reads of an org take turns. */
interface Turns {
  run<T>(orgId: string, asked: Revocable, act: () => Promise<T>): Promise<T>
}

interface Snapshot {
  events: store.StoredEvent[]
  done: boolean
  /** Of the last event that was in the log before the page was read. */
  cursor: number
}

async function read(deps: { db: Db }, orgId: OrgId, query: PageQuery): Promise<Snapshot> {
  const { bytes = EVENT_PAGE_BYTES } = query
  const page = await store.after(deps.db, orgId, query.run, { ...query, bytes })
  const { position, events, isFull } = needFound(query.run, page)
  assertNotDeleted(query.run, position)
  const isAtEnd = !isFull || events.at(-1)?.cursor === position.cursor
  return { events, done: isFinal(position.status) && isAtEnd, cursor: position.cursor }
}

function pageJson({ events, done }: Snapshot): string {
  return `{"events":[${events.map(eventJson).join(',')}],"done":${done}}`
}

/** True when there is an event that the reader wants, or the run has finished; false when the time is up or he has gone. */
async function news(
  deps: { db: Db; tails: Tails },
  query: PageQuery & { orgId: OrgId; after: number },
  gone: AbortSignal,
): Promise<boolean> {
  const wanted = isWanted(query.channels)
  const { promise, resolve } = Promise.withResolvers<boolean>()
  const giveUp = () => resolve(false)
  const timer = setTimeout(giveUp, query.waitMs)
  gone.addEventListener('abort', giveUp, { once: true })
  // Joining reads what was committed since the page was; from there on each commit rings.
  const tail = deps.tails.follow(runLog(deps.db, query.orgId, query.run), Math.max(query.after, query.since), {
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

interface StreamQuery extends LogQuery {
  /** Names the last event that the reader got, when it comes back: it goes on there, whatever `since` says. */
  lastEventId?: string | undefined
}

/**
 * The log from a cursor on, then what follows, until the run has finished: what is to be done with the sink. When the
 * last event that the reader got is not in the log, it begins with `reset`, and then the first event.
 */
export async function liveStream(
  deps: PourDeps & { db: Db },
  orgId: OrgId,
  query: StreamQuery,
): Promise<(sink: SseSink) => Promise<void>> {
  const { run, channels } = query
  const last = readLast(query)
  const found = needFound(run, await store.position(deps.db, orgId, run, last.cursor))
  assertNotDeleted(run, found)
  const pouring = { orgId, log: runLog(deps.db, orgId, run), since: last.cursor, channels }
  if (!last.isNamed || isThere(last, found.eventAt)) return (sink) => pour(deps, pouring, sink)
  return (sink) => pour(deps, { ...pouring, since: 0, first: RESET }, sink)
}

const RESET = sseFrame(
  'reset',
  JSON.stringify({
    message: [
      'The last event that was read is not in the log of this run: the database was restored to an earlier state.',
      'The stream goes on with the first event of the log.',
    ].join(' '),
  }),
  0,
)

interface LastRead {
  cursor: number
  /** Nobody has named an event: `since` is a filter, and may lie beyond the end of the log. */
  isNamed: boolean
  at?: number
}

/**
 * `<cursor>`, or `<cursor>.<at>`. Anything else is none of ours, and names no event. `0` is that of a reset, behind
 * which all of the log comes. A browser keeps the `since` of its address, which may lie behind all that was restored.
 */
function readLast({ since, lastEventId = '' }: StreamQuery): LastRead {
  const [, cursor, at] = /^(0|[1-9][0-9]{0,14})(?:\.([0-9]{1,15}))?$/.exec(lastEventId) ?? []
  if (cursor === undefined) return { cursor: since, isNamed: false }
  return { cursor: Number(cursor), isNamed: cursor !== '0', ...(at !== undefined && { at: Number(at) }) }
}

/** After a restore the same cursor is given out once more, to an event of another time. */
function isThere({ at }: LastRead, eventAt: number | null): boolean {
  return eventAt !== null && (at === undefined || at === eventAt)
}

function needFound<T>(run: RunId, found: T | undefined): T {
  if (found === undefined) throw new Fault('NOT_FOUND', { run })
  return found
}

function assertNotDeleted(run: RunId, { deletedAt }: store.LogPosition): void {
  if (deletedAt) throw new Fault('RUN_DELETED', { run, deletedAt: deletedAt.getTime() })
}

function runLog(db: Db, orgId: OrgId, run: RunId): LiveLog {
  return {
    id: run,
    orgId,
    async after(since) {
      const found = await store.after(db, orgId, run, { since, channels: CHANNELS, ...LIVE_PAGE })
      if (!found) return { page: new LogPage([]), end: 0, isOver: true }
      const { events, position } = found
      return { page: new LogPage(events), end: position.cursor, isOver: isFinal(position.status) }
    },
  }
}
