/**
 * The epoch of the cluster: which history of the database this is. After a restore numbers go on from the backup, so an
 * agent may hold a run under the epoch that is given out once more, and a reader may know positions that are to come.
 * Agents say which epoch welcomed them last, and are not listened to about what they hold of another one. Keys of run
 * tokens and series of positions are forgotten with each new epoch.
 */
import { randomBytes } from 'node:crypto'
import type { Log } from '@windlass/shared/log.ts'
import { type Db, PostgresError, type Sql } from './client.ts'

interface Known {
  epoch: string
  system: string
  isNoted: boolean
  /** It came with a dump: the table is not the one in which it was noted. */
  isCopy: boolean
}

/** Answers the epoch, and begins another one when the database has been restored, there or into another place. */
export async function openCluster(db: Db, log: Log): Promise<string> {
  const system = await systemOf(db, log)
  return db.begin(async (tx) => {
    const [known] = await tx<[Known]>`
      select epoch, system, noted_in is not null as is_noted, (noted_in <> tableoid) is true as is_copy
      from cluster
      for update`
    const isSame = system === undefined || system === known.system
    if (isSame && known.isNoted && !known.isCopy) return known.epoch
    if ((isSame || known.system === '') && !known.isCopy) {
      await noteServer(tx, system)
      return known.epoch
    }
    const epoch = await beginEpoch(tx, { system })
    log.warn('cluster.restored', { epoch, before: known.epoch })
    return epoch
  })
}

export interface EpochOptions {
  /** They hold nothing of before. */
  areAgentsStopped?: boolean
  /** The server and the database, from `systemOf`: the next start does not take it for restored once more. */
  system?: string | undefined
}

function noteServer(tx: Sql, system: string | undefined): PromiseLike<unknown> {
  return tx`update cluster set system = coalesce(${system ?? null}, system), noted_in = tableoid`
}

/**
 * From here on nothing counts that agents and readers know of before. Coordinators that run have to start again. Agents
 * may go on with what they held until they hear of it, or end it by themselves; nothing is given out before that, see
 * coordinator/dispatch/restored-hold.ts, unless `areAgentsStopped`.
 */
export async function beginEpoch(tx: Sql, { areAgentsStopped = false, system }: EpochOptions = {}): Promise<string> {
  const epoch = randomBytes(8).toString('hex')
  const begunAt = areAgentsStopped ? tx`null` : tx`now()`
  await noteServer(tx, system)
  await tx`update cluster set epoch = ${epoch}, begun_at = ${begunAt}`
  // With these are verified the tokens of runs that were given out before.
  await tx`delete from signing_keys`
  // As wide as those of a log that begins: see coordinator/events/org-log.ts.
  await tx`update org_logs set series = substr(md5(random()::text || org_id), 1, 12)`
  return epoch
}

/** How many milliseconds ago this epoch began with a restore; undefined where agents hold nothing of another one. */
export async function restoredAgo(db: Db): Promise<number | undefined> {
  const [row] = await db<[{ ms: number }?]>`
    select (extract(epoch from now() - begun_at) * 1000)::float8 as ms from cluster where begun_at is not null`
  // A clock that was set back makes no wait longer.
  return row && Math.max(0, row.ms)
}

/** What a coordinator is told that began in another epoch; undefined while it is the same. */
export async function restoredSince(sql: Sql, epoch: string): Promise<string | undefined> {
  const [row] = await sql`select from cluster where epoch = ${epoch}`
  if (row) return undefined
  return 'The database was restored to an earlier state: this coordinator has to start again.'
}

/** SQLSTATE: this user may not execute the function. */
const FORBIDDEN = '42501'

/**
 * Names the server and the database in it: a dump is mostly restored into another one. Undefined where the server does
 * not tell its own. A copy of its disk has the same name: `windlass admin restored` is for that.
 */
export async function systemOf(db: Db, log?: Log): Promise<string | undefined> {
  try {
    const [row] = await db<[{ system: string }]>`
      select s.system_identifier || '/' || d.oid as system
      from pg_control_system() s
      join pg_database d on d.datname = current_database()`
    return row.system
  } catch (error) {
    if (!(error instanceof PostgresError) || error.code !== FORBIDDEN) throw error
    log?.debug('cluster.unnamed', { reason: error.message })
    return undefined
  }
}
