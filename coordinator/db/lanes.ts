import { createTurns } from '../turns.ts'
import { type Database, type DatabaseOptions, type Db, openDatabase } from './client.ts'

/**
 * Connections for one kind of work. Prepared statements and the server's caches belong to a connection, so it is fast
 * at what it has just done. A pool of postgres.js hands its connections out in turn: each sees every statement, and
 * none of them often.
 */
export interface Lanes {
  /**
   * Runs the work on the first free connection; work that finds none waits for one, and each org has its turn. The work
   * must not ask for a lane itself.
   */
  run<T>(work: (db: Db) => Promise<T>, orgId?: string): Promise<T>
  /** Lets statements under way finish for 5 s, then cuts them off. */
  close(): Promise<void>
}

/**
 * Opens `count` lanes, each of which runs one piece of work at a time. A connection is opened when it is first needed.
 */
export function openLanes(count: number, options: Omit<DatabaseOptions, 'max'>): Lanes {
  const lanes = Array.from({ length: count }, () => openDatabase({ ...options, max: 1 }))
  const busy = new Set<Database>()
  const waiting = createTurns<(lane: Database) => void>()

  function take(orgId: string): Promise<Database> | Database {
    const free = lanes.find((lane) => !busy.has(lane))
    if (!free) return new Promise((resolve) => waiting.add(orgId, resolve))
    busy.add(free)
    return free
  }

  function giveBack(lane: Database) {
    const next = waiting.take(() => true)
    if (next) next(lane)
    else busy.delete(lane)
  }

  return {
    async run(work, orgId = '') {
      const lane = await take(orgId)
      try {
        return await work(lane.db)
      } finally {
        giveBack(lane)
      }
    },
    async close() {
      await Promise.all(lanes.map((lane) => lane.close()))
    },
  }
}
