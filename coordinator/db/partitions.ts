/**
 * Months of the tables that grow for ever. They are made ahead: nothing can be written where a month is missing, so no
 * run of it can be created.
 */
import { firstIdAt, newId, timeOf } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'
import { type Db, lacksPartition, type Sql } from './client.ts'

/** Tables, and the kind of the ids that lead to their partitions. */
const TABLES = [
  ['run_events', 'run'],
  ['journal', 'run'],
] as const
/** The month before is for clocks that are slow; those after last while making them fails. */
const MONTHS = [-1, 0, 1, 2]
const EVERY_MS = 3_600_000

/** Makes the months that new ids fall into, by the clock of the database and by that of this process. */
export async function makePartitionsAhead(db: Db, log: Log): Promise<void> {
  const [{ now }] = await db<[{ now: number }]>`select (extract(epoch from now()) * 1000)::float8 as now`
  // Ids never go back: after a clock that was fast for a moment they stay ahead of it.
  const clocks = [now, timeOf(newId('run'))]
  await makePartitions(
    db,
    log,
    clocks.flatMap((at) => MONTHS.map((months) => monthStart(at, months))),
  )
}

/** Makes what is missing when a row is refused for it: the clock of this machine may have jumped by months. */
export interface Partitions {
  /** Does this, and once more with new partitions where one was missing. So it must change nothing before it fails. */
  atHand<T>(act: () => Promise<T>): Promise<T>
}

export function createPartitions(db: Db, log: Log): Partitions {
  let making: Promise<void> | undefined
  return {
    async atHand(act) {
      try {
        return await act()
      } catch (error) {
        if (!lacksPartition(error)) throw error
        log.warn('partition.missing', { now: Date.now() })
        await (making ??= makePartitionsAhead(db, log).finally(() => (making = undefined)))
        return act()
      }
    },
  }
}

/** Makes the partitions of the months that hold these times, where they are missing. */
export async function makePartitions(db: Db, log: Log, times: readonly number[]): Promise<void> {
  const starts = [...new Set(times.map((at) => monthStart(at)))]
  const wanted = TABLES.flatMap(([table, prefix]) => starts.map((start) => partitionOf(table, prefix, start)))
  if ((await missing(db, wanted)).length === 0) return
  await db.begin(async (tx) => {
    // Coordinators that start together want the same ones.
    await tx`select pg_advisory_xact_lock(hashtext('windlass partitions'))`
    for (const { table, name, firstId, endId } of await missing(tx, wanted)) {
      await tx`select add_partition(${table}, ${name}, ${firstId}, ${endId})`
      log('partition.made', { partition: name })
    }
  })
}

/** Looks every hour whether a month has to be made, until the signal fires. */
export async function keepPartitionsAhead(db: Db, log: Log, signal: AbortSignal): Promise<void> {
  for (;;) {
    await pause(EVERY_MS, signal)
    if (signal.aborted) return
    // Two months are left when this begins to fail.
    await makePartitionsAhead(db, log).catch((error: unknown) => log.error('partition.unmade', { error }))
  }
}

/** Ids by the partition that holds them. */
export function byMonth<T extends string>(ids: readonly T[]): T[][] {
  return [...Map.groupBy(ids, (id) => monthStart(timeOf(id))).values()]
}

interface Partition {
  table: string
  name: string
  firstId: string
  endId: string
}

function partitionOf(table: string, prefix: 'run', start: number): Partition {
  const name = `${table}_${new Date(start).toISOString().slice(0, 7).replace('-', '_')}`
  return { table, name, firstId: firstIdAt(prefix, start), endId: firstIdAt(prefix, monthStart(start, 1)) }
}

/** The first millisecond of the month, or of the one so many months later. */
function monthStart(at: number, later = 0): number {
  const time = new Date(at)
  return Date.UTC(time.getUTCFullYear(), time.getUTCMonth() + later, 1)
}

async function missing(sql: Sql, wanted: readonly Partition[]): Promise<Partition[]> {
  // Not `to_regclass`: within a transaction that has waited it answers what its session knew before.
  const rows = await sql<{ name: string }[]>`
    select name
    from unnest(${wanted.map(({ name }) => name)}::text[]) as name
    where not exists (
      select from pg_class c where c.relname = name and c.relnamespace = quote_ident(current_schema())::regnamespace
    )`
  const names = new Set(rows.map(({ name }) => name))
  return wanted.filter(({ name }) => names.has(name))
}
