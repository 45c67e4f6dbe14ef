import { setTimeout as delay } from 'node:timers/promises'
import type { Sql } from './client.ts'

const LOOK_MS = 5000

/** What a program is told on whose database it cannot work any more; undefined where it can. */
export async function outgrownBy(sql: Sql, known: number): Promise<string | undefined> {
  const [row] = await sql<{ label: string }[]>`
    select lpad(number::text, 4, '0') || '-' || name as label
    from windlass_migrations
    where number > ${known} and breaking
    order by number
    limit 1`
  if (!row) return undefined
  const what = `A newer Windlass has changed the database by the migration ${row.label}`
  return `${what}, after which this one cannot work on it. Install the newer one here too.`
}

export interface WatchOptions {
  /** Number of migrations that this program knows. */
  known: number
  signal: AbortSignal
  everyMs?: number
}

/** Looks every few seconds. Returns why the database has outgrown this program, undefined at the end of the signal. */
export async function watchSchema(sql: Sql, { known, signal, everyMs = LOOK_MS }: WatchOptions) {
  while (!signal.aborted) {
    await delay(everyMs, undefined, { signal, ref: false }).catch(() => undefined)
    // A database that is away is not newer; it is looked at again when it is back.
    const why = signal.aborted ? undefined : await outgrownBy(sql, known).catch(() => undefined)
    if (why !== undefined) return why
  }
  return undefined
}
