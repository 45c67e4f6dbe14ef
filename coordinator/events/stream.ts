import { Fault } from '@windlass/shared/errors.ts'
import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import type { Channel } from '@windlass/shared/model/event.ts'
import { isFinal } from '@windlass/shared/model/run.ts'
import type { Deps } from '../deps.ts'
import { eventJson, isWanted } from './live.ts'
import * as store from './store.ts'

/** 15 s: proxies and clients take a silent stream for a dead one. */
const HEARTBEAT_MS = 15_000
/**
 * A reader that leaves so many characters of its stream unread is cut off; it resumes by its last cursor. One page of the log
 * may come on top, so that each connection brings a reader further, however large the events are.
 */
const MOST_WAITING = 2 * 1024 * 1024

/** Where a live stream is written. */
export interface SseSink {
  /** False: the reader is slow; wait for `drained` before the next write. */
  write(text: string): boolean
  /** Resolves when the buffer is empty again or the reader has gone. */
  drained(): Promise<void>
  close(): void
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
  deps: Pick<Deps, 'db' | 'tails'>,
  orgId: OrgId,
  query: PageQuery,
  client: { readonly gone: AbortSignal },
): Promise<string> {
  const page = await read(deps, orgId, query)
  if (page.events.length > 0 || page.done || query.waitMs === 0) return pageJson(page)
  // Nobody leaves a page that came at once, so only here is anybody looked after.
  const came = await news(deps, { ...query, orgId, after: page.cursor }, client.gone)
  return pageJson(came ? await read(deps, orgId, query) : page)
}

interface Snapshot {
  events: store.StoredEvent[]
  done: boolean
  /** Of the last event that was in the log before the page was read. */
  cursor: number
}

async function read(deps: Pick<Deps, 'db'>, orgId: OrgId, query: PageQuery): Promise<Snapshot> {
  const position = await store.position(deps.db, orgId, query.run)
  if (!position) throw new Fault('NOT_FOUND', { run: query.run })
  const { events, isFull } = await store.after(deps.db, query.run, query)
  const isAtEnd = !isFull || events.at(-1)?.cursor === position.cursor
  return { events, done: isFinal(position.status) && isAtEnd, cursor: position.cursor }
}

function pageJson({ events, done }: Snapshot): string {
  return `{"events":[${events.map(eventJson).join(',')}],"done":${done}}`
}

/** True when there is an event that the reader wants, or the run has finished; false when the time is up or he has gone. */
async function news(
  deps: Pick<Deps, 'tails'>,
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
    take: (events, done) => {
      if (done || events.some(wanted)) resolve(true)
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

/** The log from a cursor on, then what follows, until the run has finished: what is to be done with the sink. */
export async function liveStream(
  deps: Pick<Deps, 'db' | 'tails'>,
  orgId: OrgId,
  query: LogQuery,
): Promise<(sink: SseSink) => Promise<void>> {
  if (!(await store.position(deps.db, orgId, query.run))) throw new Fault('NOT_FOUND', { run: query.run })
  return (sink) => pour(deps, orgId, query, sink)
}

async function pour(deps: Pick<Deps, 'tails'>, orgId: OrgId, query: LogQuery, sink: SseSink): Promise<void> {
  const wanted = isWanted(query.channels)
  let waiting: string[] = []
  let waitingChars = 0
  let done = false
  const cutting = new AbortController()
  const gone = AbortSignal.any([sink.gone, cutting.signal])
  let wake = () => {}
  const tail = deps.tails.follow({ id: query.run, orgId }, query.since, {
    take(events, isDone) {
      if (waitingChars > MOST_WAITING) return cut()
      const frames = events.filter(wanted).map(frame)
      waiting.push(...frames)
      waitingChars += frames.reduce((sum, text) => sum + text.length, 0)
      done ||= isDone
      wake()
    },
  })
  // Here and not in the loop below, which waits for the reader just when it takes nothing.
  const cut = () => {
    cutting.abort()
    waiting = []
    tail.leave()
    sink.close()
  }
  try {
    sink.write(': connected\n\n')
    while (!gone.aborted) {
      const text = waiting.join('')
      waiting = []
      waitingChars = 0
      if (text && !sink.write(text)) await sink.drained()
      if (gone.aborted) return
      if (done && waiting.length === 0) return end(sink)
      if (waiting.length === 0 && !(await rung())) sink.write(': heartbeat\n\n')
    }
  } finally {
    tail.leave()
  }

  /** True when something came, false when it is time for a sign of life. */
  function rung(): Promise<boolean> {
    return new Promise((resolve) => {
      const settle = (came: boolean) => {
        clearTimeout(timer)
        gone.removeEventListener('abort', onGone)
        wake = () => {}
        resolve(came)
      }
      const onGone = () => settle(true)
      const timer = setTimeout(() => settle(false), HEARTBEAT_MS)
      gone.addEventListener('abort', onGone, { once: true })
      wake = () => settle(true)
      if (waiting.length > 0 || done || gone.aborted) settle(true)
    })
  }
}

/** The `id:` line comes last: some clients move their cursor as soon as they have read it. */
function frame(event: store.StoredEvent): string {
  return `event: ${event.type}\ndata: ${eventJson(event)}\nid: ${event.cursor}\n\n`
}

function end(sink: SseSink): void {
  sink.write('event: done\ndata: {"done":true}\n\n')
  sink.close()
}
