/**
 * Each worker holds a lock of its session, which the database drops the moment the connection is gone, or when it was
 * silent for long: then the process stands still. The others look at these locks, and free what a worker has locked
 * whose lock nobody holds. A worker is noted in `job_workers` once it has its lock: one that is not there may be of a
 * coordinator of before, where only the time tells.
 */
import type { Pool, PoolClient } from 'pg'
import type { Log } from '@windlass/shared/log.ts'
import { probe } from '@windlass/shared/probe.ts'
import { pause, within } from '@windlass/shared/time.ts'
import { aborted } from './aborted.ts'
import { FREED } from './dead-workers.ts'

const LOOK_MS = 2000
/** Free at so many looks in a row: a worker whose connection was cut has its lock back before. */
const LOOKS = 3
/** A worker without its lock is stopped after this long, which is before others free what it has. */
const LOST_MS = 3000
const AGAIN_MS = 100
/** When no answer comes, the server may have dropped the session without our knowing. */
const ANSWER_MS = 5000
/**
 * A machine that vanished shows after 11 s, by unanswered probes. For one that was paused, and for a process that was
 * stopped, the kernel answers these, and a pooler does for any. So the session ends when five looks in a row are
 * missing; one whose statement takes long is not idle. A worker that comes back within the looks of the others has its
 * lock again before they free anything.
 */
const SESSION = `
  set idle_session_timeout = '10s';
  set tcp_keepalives_idle = 5;
  set tcp_keepalives_interval = 2;
  set tcp_keepalives_count = 3`
const KEY = `hashtextextended('windlass job worker ' || id, 0)`

interface LockDeps {
  pgPool: Pool
  log: Log
}

/**
 * Holds the worker's lock until the signal fires, and frees meanwhile what dead workers have locked. Resolves as well
 * when the lock was lost and could not be had again: the worker is to be stopped then, so that it begins nothing that
 * others do too. What it executes may be done twice, which each job bears.
 */
export async function keepWorkerLock(deps: LockDeps, worker: string, signal: AbortSignal): Promise<void> {
  const lost = new AbortController()
  const over = AbortSignal.any([signal, lost.signal])
  let patience: NodeJS.Timeout | undefined
  const beginToWait = () => (patience ??= setTimeout(() => lost.abort(), LOST_MS))
  const onHeld = () => {
    clearTimeout(patience)
    patience = undefined
  }
  while (!over.aborted) {
    beginToWait()
    try {
      await Promise.race([holdOnce(deps, { worker, signal: over, onHeld }), aborted(lost.signal)])
    } catch (error) {
      deps.log.debug('jobs.lock.failed', { error })
    }
    beginToWait()
    await pause(AGAIN_MS, over)
  }
  clearTimeout(patience)
  if (!signal.aborted) deps.log.warn('jobs.lock.lost', { worker })
}

/** Holds it over one connection, for as long as that answers. */
async function holdOnce(
  { pgPool, log }: LockDeps,
  { worker, signal, onHeld }: { worker: string; signal: AbortSignal; onHeld: () => void },
): Promise<void> {
  const client = await pgPool.connect()
  try {
    if (signal.aborted) return
    await client.query(SESSION)
    await client.query(`select pg_advisory_lock(${KEY}) from (select $1::text as id) w`, [worker])
    await client.query('insert into job_workers (id) values ($1) on conflict do nothing', [worker])
    onHeld()
    await lookAround({ client, log }, worker, signal)
    await ask(client, 'delete from job_workers where id = $1 returning id', [worker])
  } finally {
    // Closed, not lent on: with its session ends the lock.
    client.release(true)
  }
}

/** Frees what is left of workers whose lock was free at the last looks. Its questions show that ours is held. */
async function lookAround(
  { client, log }: { client: PoolClient; log: Log },
  worker: string,
  signal: AbortSignal,
): Promise<void> {
  const gone = new AbortController()
  client.once('end', () => gone.abort())
  const over = AbortSignal.any([signal, gone.signal])
  let looks = new Map<string, number>()
  while (!over.aborted) {
    const free = await ask(client, `select id from job_workers where id <> $1 and ${TRY}`, [worker])
    looks = new Map(free.map((id) => [id, (looks.get(id) ?? 0) + 1]))
    const dead = free.filter((id) => looks.get(id)! >= LOOKS)
    if (dead.length > 0) {
      const freed = await ask(client, FREE, [dead])
      if (freed.length > 0) log.warn('jobs.workers.dead', { workers: freed })
    }
    probe('workers.looked', { free })
    await pause(LOOK_MS, over)
  }
  if (gone.signal.aborted) throw new Error('The connection that held the lock of a worker was lost.')
}

/** Takes the lock for this statement, if nobody has it. */
const TRY = `pg_try_advisory_xact_lock(${KEY})`

const FREE = `
  with dead as (
    delete from job_workers
    where id = any($1::text[]) and ${TRY}
    returning id
  ),
  ${FREED}
  select id from dead`

async function ask(client: PoolClient, text: string, values: unknown[]): Promise<string[]> {
  const answer = client.query<{ id: string }>(text, values)
  const { rows } = await within(ANSWER_MS, answer, 'The database did not answer the connection that holds a lock')
  return rows.map(({ id }) => id)
}
