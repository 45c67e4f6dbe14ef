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
  signal: AbortSignal
  everyMs?: number
}

type Look = () => Promise<string | undefined>

/**
 * Looks every few seconds. Returns why this program cannot go on with the database, undefined at the end of the signal.
 */
export async function watchDatabase(looks: readonly Look[], { signal, everyMs = LOOK_MS }: WatchOptions) {
  while (!signal.aborted) {
    await delay(everyMs, undefined, { signal, ref: false }).catch(() => undefined)
    for (const look of signal.aborted ? [] : looks) {
      // A database that is away is not newer; it is looked at again when it is back.
      const why = await look().catch(() => undefined)
      if (why !== undefined) return why
    }
  }
  return undefined
}
