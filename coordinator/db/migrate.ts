/**
 * Brings the database up to this program: one migration after the other, each in a transaction of its own that also records
 * it. All coordinators of a database may do this at once. Whoever has the lock takes the next step, the others find it taken.
 */
import { join } from 'node:path'
import { setTimeout as delay } from 'node:timers/promises'
import type { Log } from '@windlass/shared/log.ts'
import { isLockTimeout, openDatabase, PostgresError } from './client.ts'
import type { Database, Sql, Tx } from './client.ts'
import { refuseUnfit } from './fit.ts'
import { refuseLentServers } from './pooler-mode.ts'
import { type Blocker, blockersOf, described } from './blockers.ts'
import { isOfPreview, MADE_BY_PREVIEW, readMigrations } from './migration-files.ts'
import type { Migration } from './migration-files.ts'

export interface MigrateOptions {
  folder?: string
  log: Log
  /** How long another coordinator's step is waited for. */
  lockWithinMs?: number
  /** How long is waited for those who hold what a step changes: a dump, say, or a session that was left open. */
  tablesWithinMs?: number
}

/**
 * A step that waits for a table keeps everybody from it who comes later, so it waits for less than anybody notices,
 * gives way, and tries again.
 */
const TABLE_LOCK_MS = 300
const FIRST_REST_MS = 1000
const MOST_REST_MS = 30_000
/** A dump of the night is over by then. Whoever starts us again then begins with a new wait. */
const TABLES_WITHIN_MS = 6 * 60 * 60_000

const FOLDER = join(import.meta.dirname, 'migrations')
// Any number will do that nobody else uses: the bytes of "windlass" as a bigint.
const LOCK = '8604520161023325043'

/**
 * Answers the files that this call applied, in their order, and how many this program knows. Throws, with what to do, when program and
 * database do not fit. A newer database fits as long as no migration that is unknown here is breaking.
 */
export async function migrate(
  database: Pick<Database, 'url'>,
  { folder = FOLDER, log, lockWithinMs = 300_000, tablesWithinMs = TABLES_WITHIN_MS }: MigrateOptions,
): Promise<{ applied: string[]; known: number }> {
  const migrations = await readMigrations(folder)
  // Connections of its own: a step over a big table takes longer than a statement of ours may. One holds the lock, the other
  // is for what cannot run in the transaction that holds it.
  const own = openDatabase({ url: database.url, max: 2, statementTimeoutMs: 0, log })
  const options = { folder, log, lockWithinMs, tablesWithinMs }
  const applied: string[] = []
  try {
    await refuseLentServers(database.url, log)
    await refuseUnfit(own.db, log)
    // One round more than there are steps, to see that none is left.
    for (let round = 0; round <= migrations.length; round++) {
      const step = await whenFree(() => own.db.begin((tx) => takeNextStep(tx, own.db, migrations, options)), options)
      if (!step) break
      applied.push(step)
    }
    return { applied, known: migrations.length }
  } finally {
    await own.close()
  }
}

/** Others hold what the step changes. Nothing of it was done. */
class Blocked extends Error {
  readonly file: string
  readonly by: readonly Blocker[]

  constructor(file: string, by: readonly Blocker[], cause: unknown) {
    super(`Migration ${file} waits for ${described(by)}`, { cause })
    this.file = file
    this.by = by
  }
}

/** Between two tries the transaction is over: others have their turn, and so has another coordinator that migrates. */
async function whenFree<T>(take: () => Promise<T>, { log, tablesWithinMs }: Required<MigrateOptions>): Promise<T> {
  const since = performance.now()
  for (let restMs = FIRST_REST_MS; ; restMs = Math.min(2 * restMs, MOST_REST_MS)) {
    try {
      return await take()
    } catch (error) {
      if (!(error instanceof Blocked)) throw error
      const waitedMs = Math.round(performance.now() - since)
      if (waitedMs + restMs > tablesWithinMs)
        throw new Error(`${error.message}, for ${waitedMs} ms now. ${UNCHANGED} ${WHEN_FREE}`, { cause: error })
      const { file, by } = error
      log.warn('database.migration.waits', { migration: file, for: described(by), by, waitedMs })
      await delay(restMs)
    }
  }
}

async function takeNextStep(tx: Tx, outside: Sql, migrations: Migration[], options: Required<MigrateOptions>) {
  await lock(tx, options.lockWithinMs)
  const known = await recorded(tx)
  refuseMisfit(known, migrations, options.folder)
  const next = migrations[known.length]
  if (!next) return undefined

  const startedAt = performance.now()
  await (next.online ? online(outside, next) : inside(tx, outside, next))
  await tx`
    insert into windlass_migrations (number, name, checksum, breaking)
    values (${next.number}, ${next.name}, ${next.checksum}, ${next.breaking})`
  options.log('database.migrated', { migration: next.file, tookMs: Math.round(performance.now() - startedAt) })
  return next.file
}

async function online(outside: Sql, step: Migration): Promise<void> {
  try {
    await outside.unsafe(step.text)
  } catch (error) {
    throw failed(step, error)
  }
}

async function inside(tx: Tx, outside: Sql, step: Migration): Promise<void> {
  const [session] = await tx<{ pid: number }[]>`select pg_backend_pid() as pid`.simple()
  // Opened now: there is little time to ask for whom the step waits.
  await outside`select`.simple()
  await tx.unsafe(`set local lock_timeout = ${TABLE_LOCK_MS}`)
  const over = new AbortController()
  const blockers = blockersOf(outside, session!.pid, { afterMs: TABLE_LOCK_MS / 2, signal: over.signal })
  try {
    await tx.unsafe(step.text)
  } catch (error) {
    throw isLockTimeout(error) ? new Blocked(step.file, await blockers, error) : failed(step, error)
  } finally {
    over.abort()
    await blockers
  }
}

/**
 * Asks again and again, since a session that *waits* for a lock holds a snapshot, and `create index concurrently` of the one
 * who has it would wait for that snapshot: neither would go on. For the same reason what is read in this transaction is read
 * by simple statements: the portal of any other lives, with its snapshot, until the next statement.
 */
async function lock(tx: Tx, withinMs: number) {
  // While an online step runs beside it this transaction is idle, for as long as it takes.
  await tx`set local idle_in_transaction_session_timeout = 0`
  const deadline = performance.now() + withinMs
  while (!(await tryLock(tx))) {
    if (performance.now() > deadline) {
      throw new Error(
        `Another coordinator has been changing the database for more than ${withinMs / 1000} s. Let it finish and start again; if there is none, end the session that holds the advisory lock ${LOCK} (see pg_locks).`,
      )
    }
    await delay(100)
  }
}

async function tryLock(tx: Tx): Promise<boolean> {
  const [row] = await tx<
    { isLocked: boolean }[]
  >`select pg_try_advisory_xact_lock(${tx.unsafe(LOCK)}) as is_locked`.simple()
  return row?.isLocked === true
}

interface Recorded {
  number: number
  name: string
  checksum: string
  breaking: boolean
}

async function recorded(tx: Tx): Promise<Recorded[]> {
  await tx`
    create table if not exists windlass_migrations (
      number     int primary key,
      name       text not null,
      checksum   text not null,
      breaking   boolean not null,
      applied_at timestamptz not null default now()
    )`
  return tx<Recorded[]>`
    select number, name, checksum, breaking
    from windlass_migrations
    order by number`.simple()
}

const PREVIEW_ADVICE = [
  'name another, empty database in WINDLASS_DATABASE_URL. If Windlass runs its own database, move the folder',
  'WINDLASS_HOME (.windlass) away and start again.',
].join(' ')

function refuseMisfit(known: Recorded[], migrations: Migration[], folder: string) {
  if (isOfPreview(known)) throw new Error(`${MADE_BY_PREVIEW}: ${PREVIEW_ADVICE}`)
  known.forEach((record, index) => {
    const label = `${String(record.number).padStart(4, '0')}-${record.name}`
    if (record.number !== index + 1) {
      throw new Error(
        `The database has the migration ${label} but lacks number ${index + 1}: restore it from a backup, or put the missing row back into windlass_migrations if its changes are there.`,
      )
    }
    const file = migrations[index]
    if (!file && record.breaking) throw newer(label, migrations.length)
    if (file && file.checksum !== record.checksum) {
      throw new Error(
        `Migration ${file.file} in ${folder} is not the one that the database was changed with (${label}): put its text back as it was, and make further changes in a new migration.`,
      )
    }
  })
}

function newer(label: string, knownHere: number): Error {
  return new Error(
    `The database is newer than this Windlass: it has the migration ${label}, this program knows ${knownHere}, and cannot be used by older programs. Install the Windlass that last used it, or restore a backup from before the upgrade.`,
  )
}

const UNCHANGED = 'Nothing of it was kept: the database is as it was before this migration.'
const WHEN_FREE = 'Start again when that has ended, or end it (`select pg_terminate_backend(<pid>)`).'

function failed(migration: Migration, error: unknown): Error {
  const reason = error instanceof Error ? error.message : String(error)
  const location =
    error instanceof PostgresError && error.position ? ` in line ${lineOf(migration.text, Number(error.position))}` : ''
  const left = migration.online
    ? 'It ran outside of a transaction: remove what it left (an index marked INVALID, say) and start again.'
    : UNCHANGED
  return new Error(`Migration ${migration.file} failed${location}: ${reason}. ${left}`, { cause: error })
}

/** The server counts characters (not UTF-16 units) from one. */
function lineOf(text: string, position: number): number {
  const before = Array.from(text).slice(0, position - 1)
  return before.filter((character) => character === '\n').length + 1
}
