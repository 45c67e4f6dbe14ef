import { randomUUID } from 'node:crypto'
import type { Log } from '@windlass/shared/log.ts'
import { probe } from '@windlass/shared/probe.ts'
import type { Db } from '../db/client.ts'

const TOPICS = ['run', 'org', 'pool', 'runner', 'workflows'] as const
/** `workflows`: of an org, by its id. */
export type Topic = (typeof TOPICS)[number]
/** `all`: of more than are named. */
type Rings = Partial<Record<Topic, string[] | 'all'>>

/** Tells other coordinators what has changed. A lost ring costs latency only: every waiter also looks by itself. */
export interface Bell {
  ring(topic: Topic, id: string): void
  /** Hears what others tell from now on. */
  listen(listener: BellListener): Promise<void>
  close(): Promise<void>
}

export interface BellListener {
  /** Something changed elsewhere. */
  rung(topic: Topic, id: string): void
  /** Too many of this topic to name, or rings may have been missed while the connection was lost: look at all of it. */
  rungAll(topic: Topic): void
  /** The connection was lost. */
  lost(): void
}

const CHANNEL = 'windlass'
/** NOTIFY takes a lock that is shared by the whole cluster, so what changes within this time is told at once. */
const GATHER_MS = 10
/** PostgreSQL takes payloads below 8000 bytes: 200 ids of 31 characters, quoted. */
const MOST_IDS = 200
/**
 * Of a topic in one statement, which takes that lock once: a commit of entries may have so many runs. They are 20
 * payloads of 7 KB in a queue that may have 8 GB and that every coordinator empties at once, within a millisecond.
 */
const MOST_OF_TOPIC = 4000

export function createBell(db: Db, log: Log): Bell {
  const self = randomUUID()
  /** How payloads of ours begin: most are, and none of these is read. */
  const ours = JSON.stringify([self]).slice(0, -1)
  let gathered = new Map<Topic, Set<string>>()
  let timer: NodeJS.Timeout | undefined
  let listening: { unlisten: () => Promise<void> } | undefined

  function hear(payload: string, listener: BellListener) {
    if (payload.startsWith(ours)) return
    const [, rings] = JSON.parse(payload) as [string, Rings]
    // The coordinator of a version before this one means all there is.
    if ((rings as unknown) === 'all') return TOPICS.forEach((topic) => rungAll(listener, topic))
    for (const [topic, ids] of Object.entries(rings) as [Topic, string[] | 'all'][])
      if (ids === 'all') rungAll(listener, topic)
      else for (const id of ids) rung(listener, topic, id)
  }

  function rung(listener: BellListener, topic: Topic, id: string) {
    listener.rung(topic, id)
    probe('bell.heard', { topic, id })
  }

  function rungAll(listener: BellListener, topic: Topic) {
    listener.rungAll(topic)
    probe('bell.heard', { topic, id: 'all' })
  }

  function ring(topic: Topic, id: string) {
    const ids = gathered.get(topic) ?? new Set()
    if (ids.size <= MOST_OF_TOPIC) gathered.set(topic, ids.add(id))
    timer ??= setTimeout(tell, GATHER_MS)
  }

  function tell() {
    timer = undefined
    const payloads = inPieces(gathered).map((rings) => JSON.stringify([self, rings]))
    gathered = new Map()
    db`select pg_notify(${CHANNEL}, payload) from unnest(${payloads}::text[]) as payload`.catch((error: unknown) =>
      log.warn('bell.failed', { error }),
    )
  }

  return {
    ring,
    async listen(listener) {
      let isHeard = false
      listening = await db.listen(
        CHANNEL,
        (payload) => hear(payload, listener),
        () => {
          isHeard = true
          TOPICS.forEach((topic) => rungAll(listener, topic))
        },
        () => {
          // One that is refused again and again, as its role has no session left, says nothing of the database.
          if (isHeard) listener.lost()
          isHeard = false
        },
      )
    },
    async close() {
      clearTimeout(timer)
      await listening?.unlisten()
    },
  }
}

/** Each has what a payload takes. Of a topic that has more than are named, they have only that. */
function inPieces(gathered: ReadonlyMap<Topic, ReadonlySet<string>>): Rings[] {
  const pieces: Rings[] = []
  const named: [Topic, string][] = []
  for (const [topic, ids] of gathered)
    if (ids.size > MOST_OF_TOPIC) pieces.push({ [topic]: 'all' })
    else for (const id of ids) named.push([topic, id])
  for (let from = 0; from < named.length; from += MOST_IDS) pieces.push(byTopic(named.slice(from, from + MOST_IDS)))
  return pieces
}

function byTopic(rings: readonly [Topic, string][]): Rings {
  const grouped: Partial<Record<Topic, string[]>> = {}
  for (const [topic, id] of rings) (grouped[topic] ??= []).push(id)
  return grouped
}
