import { randomUUID } from 'node:crypto'
import type { Log } from '@windlass/shared/log.ts'
import { probe } from '@windlass/shared/probe.ts'
import type { Db } from '../db/client.ts'

/** `workflows`: of an org, by its id. */
export type Topic = 'run' | 'org' | 'pool' | 'runner' | 'workflows'
type Rings = Record<Topic, string[]>

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
  /** Too much to name, or rings may have been missed while the connection was lost: look at everything. */
  rungAll(): void
}

const CHANNEL = 'windlass'
/** NOTIFY takes a lock that is shared by the whole cluster, so what changes within this time is told at once. */
const GATHER_MS = 10
/** PostgreSQL takes payloads below 8000 bytes: 200 ids of 31 characters, quoted. */
const MOST_IDS = 200

export function createBell(db: Db, log: Log): Bell {
  const self = randomUUID()
  let gathered = new Map<string, [Topic, string]>()
  let timer: NodeJS.Timeout | undefined
  let listening: { unlisten: () => Promise<void> } | undefined

  function hear(payload: string, listener: BellListener) {
    const [from, rings] = JSON.parse(payload) as [string, Rings | 'all']
    if (from === self) return
    if (rings === 'all') listener.rungAll()
    else for (const [topic, ids] of Object.entries(rings)) for (const id of ids) rung(listener, topic as Topic, id)
  }

  function rung(listener: BellListener, topic: Topic, id: string) {
    listener.rung(topic, id)
    probe('bell.heard', { topic, id })
  }

  function ring(topic: Topic, id: string) {
    if (gathered.size <= MOST_IDS) gathered.set(`${topic} ${id}`, [topic, id])
    timer ??= setTimeout(tell, GATHER_MS)
  }

  function tell() {
    timer = undefined
    const rings = [...gathered.values()]
    gathered = new Map()
    db`select pg_notify(${CHANNEL}, ${JSON.stringify([self, rings.length > MOST_IDS ? 'all' : byTopic(rings)])})`.catch(
      (error: unknown) => log.warn('bell.failed', { error }),
    )
  }

  return {
    ring,
    async listen(listener) {
      listening = await db.listen(
        CHANNEL,
        (payload) => hear(payload, listener),
        () => listener.rungAll(),
      )
    },
    async close() {
      clearTimeout(timer)
      await listening?.unlisten()
    },
  }
}

function byTopic(rings: [Topic, string][]): Rings {
  const grouped: Rings = { run: [], org: [], pool: [], runner: [], workflows: [] }
  for (const [topic, id] of rings) grouped[topic].push(id)
  return grouped
}
