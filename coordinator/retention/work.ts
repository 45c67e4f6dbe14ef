import { firstIdAt, type OrgId, type RunId } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'
import { ourselves } from '../audit/ourselves.ts'
import { record } from '../audit/record.ts'
import type { Db, Tx } from '../db/client.ts'
import type { DatabaseClock } from '../db/database-clock.ts'
import { deleteEnded } from '../engine/commit/delete-run.ts'
import { enqueue, type Jobs, TURN_MS } from '../jobs/queue.ts'
import { digestOfKey } from '../objects/key.ts'
import type { ObjectStore } from '../objects/store.ts'
import { daysOf, type Limits } from './retention.ts'
import * as deliveries from './store-deliveries.ts'
import * as objects from './store-objects.ts'
import * as runs from './store-runs.ts'
import * as store from './store.ts'

export interface RetentionDeps {
  db: Db
  log: Log
  config: Limits
  databaseClock: Pick<DatabaseClock, 'now' | 'aheadMs'>
  objects: Pick<ObjectStore, 'delete'>
}

const DAY_MS = 86_400_000
/** Deleted in one transaction. */
const PORTION = 200
/** One of two clocks that are so far apart is wrong, and what it takes for old may be new. */
const MOST_APART_MS = 3_600_000

/** Each hour. What an org has to delete is done in turns of its own. */
export async function beginRetention({ db, log, config, databaseClock }: RetentionDeps): Promise<void> {
  const aheadMs = databaseClock.aheadMs()
  if (Math.abs(aheadMs) > MOST_APART_MS) {
    const advice = 'Set the clocks of database and coordinator; retention deletes nothing until then.'
    log.error('retention.clocks', { aheadMs, advice })
    return
  }
  const now = databaseClock.now()
  const orgs = (await store.listAll(db)).filter((row) => {
    const days = daysOf(row, config, now)
    return (days.runs ?? days.deliveries) !== undefined
  })
  await db.begin((tx) => enqueueTurns(tx, orgs))
}

function enqueueTurns(tx: Tx, orgs: readonly { orgId: OrgId }[]): Promise<void> {
  const jobs = orgs.map(({ orgId }) => ({ payload: { orgId }, inMs: 0, key: `retention:${orgId}` }))
  return enqueue(tx, 'retention:turn', jobs)
}

/**
 * Deletes what an org keeps no longer. What is left after a turn is for the next one. What fails, as a payload that
 * cannot be removed, keeps nothing else.
 */
export async function retentionTurn(
  deps: RetentionDeps,
  { orgId: org }: Jobs['retention:turn'],
  turnMs = TURN_MS,
): Promise<void> {
  const orgId = org as OrgId
  const since = performance.now()
  const isOver = () => performance.now() - since >= turnMs
  const failures: unknown[] = []
  for (const piece of [runsPiece, latePiece, deliveriesPiece, createObjectsPiece()]) {
    const isDone = await untilOver(() => piece(deps, orgId), isOver).catch((error: unknown) => {
      failures.push(error)
      return true
    })
    if (!isDone) return deps.db.begin((tx) => enqueueTurns(tx, [{ orgId }]))
  }
  if (failures.length > 0) throw failures[0]
}

/** False: the turn was over, and there may be more. */
async function untilOver(act: () => Promise<boolean>, isOver: () => boolean): Promise<boolean> {
  while (await act()) if (isOver()) return false
  return true
}

/** Answers whether there may be more. */
type Piece = (deps: RetentionDeps, orgId: OrgId) => Promise<boolean>

/** What an org keeps may change between two pieces. Undefined: it keeps all of these, or is still to be asked. */
function endOf(deps: RetentionDeps, row: store.RetentionRow, kind: 'runs' | 'deliveries'): number | undefined {
  if (Math.abs(deps.databaseClock.aheadMs()) > MOST_APART_MS) return undefined
  const now = deps.databaseClock.now()
  const days = daysOf(row, deps.config, now)[kind]
  return days === undefined ? undefined : now - days * DAY_MS
}

const runsPiece: Piece = (deps, orgId) =>
  deps.db.begin(async (tx) => {
    const row = await store.lock(tx, orgId)
    const end = endOf(deps, row, 'runs')
    if (end === undefined) return false
    const range = { after: row.runsSeen, before: firstIdAt('run', end), most: PORTION }
    const ids = await runs.nextRuns(tx, orgId, range)
    if (ids.length === 0) return false
    await runs.noteSeen(tx, orgId, ids.at(-1)!)
    await lookAt(tx, orgId, ids, end)
    return ids.length === PORTION
  })

const latePiece: Piece = (deps, orgId) =>
  deps.db.begin(async (tx) => {
    const end = endOf(deps, await store.lock(tx, orgId), 'runs')
    if (end === undefined) return false
    const due = await runs.dueLate(tx, orgId, PORTION)
    if (due.length === 0) return false
    await runs.removeLate(tx, orgId, due)
    const ids = due.map(({ runId }) => runId)
    await lookAt(tx, orgId, ids, end)
    return due.length === PORTION
  })

/** Those that are not to be deleted yet are looked at again. */
async function lookAt(tx: Tx, orgId: OrgId, runIds: readonly RunId[], end: number): Promise<void> {
  const by = ourselves(orgId)
  const { deleted, gone } = await deleteEnded(tx, orgId, { runIds, before: new Date(end), by: by.id })
  const late = runIds.filter((id) => !gone.has(id))
  await runs.addLate(tx, orgId, late)
  await noteDeleted(tx, orgId, 'runs', deleted)
}

const deliveriesPiece: Piece = (deps, orgId) =>
  deps.db.begin(async (tx) => {
    const end = endOf(deps, await store.lock(tx, orgId), 'deliveries')
    if (end === undefined) return false
    const { ids, keys } = await deliveries.removeOldest(tx, orgId, { end, most: PORTION })
    // What an earlier version has put there lies under its digest, and may be the payload of others as well.
    await objects.add(
      tx,
      keys.filter((key) => digestOfKey(key) === undefined),
    )
    await noteDeleted(tx, orgId, 'deliveries', ids)
    return ids.length === PORTION
  })

/** One entry for many: one for each would stay in the place of what is deleted. */
async function noteDeleted(tx: Tx, orgId: OrgId, what: 'runs' | 'deliveries', ids: readonly string[]): Promise<void> {
  if (ids.length === 0) return
  const [first, last] = [ids.reduce(min), ids.reduce(max)]
  const target = { type: 'org', id: orgId }
  await record(tx, ourselves(orgId), { action: 'retention.delete', target, after: { [what]: ids.length, first, last } })
}

/**
 * What lay beside the database, of all orgs: after the commit that nobody finds it by any more. What cannot be removed
 * is passed over until the next turn; where all is like that, none is asked for.
 */
function createObjectsPiece(): Piece {
  let [after, isAnyGone] = ['', false]
  return async ({ db, log, objects: there }) => {
    const keys = await objects.next(db, after, PORTION)
    const gone: string[] = []
    let failed: { key: string; error: unknown } | undefined
    for (const key of keys)
      try {
        await there.delete(key)
        gone.push(key)
      } catch (error) {
        failed ??= { key, error }
      }
    await objects.remove(db, gone)
    if (failed) log.warn('retention.payloads.left', { ...failed, payloads: keys.length - gone.length })
    after = keys.at(-1) ?? after
    isAnyGone ||= gone.length > 0
    return keys.length === PORTION && isAnyGone
  }
}

const min = (a: string, b: string) => (a < b ? a : b)
const max = (a: string, b: string) => (a > b ? a : b)
