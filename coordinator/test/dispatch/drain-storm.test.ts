import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { OrgId, PoolId, RunnerId } from '@windlass/shared/ids.ts'
import { pause } from '@windlass/shared/time.ts'
import { type Database, type Db, type Sql } from '../../db/client.ts'
import { commitClaims } from '../../engine/commit/claims.ts'
import { testDatabase } from '../_kit/database.ts'
import { aPoolRow, aRunnerRow, type QueuedAsk, queuedRows } from '../_kit/queue.ts'

let database: Database
let db: Db

before(async () => {
  database = await testDatabase({ max: 20 })
  ;({ db } = database)
})
after(() => database.close())

const RUNNERS = 4
const CLAIMERS = 6
const DRAINS = 100
const QUEUED = 200

const given = async (sql: Sql, runnerId: RunnerId) =>
  (
    await sql<{ key: string }[]>`
    select run_id || '/' || epoch as key from placements where runner_id = ${runnerId}`
  ).map((row) => row.key)

async function waiting(poolId: PoolId): Promise<number> {
  const rows = await db`select from run_queue where pool_id = ${poolId} limit 1`
  return rows.length
}

/**
 * Closes the runner and opens it again. Answers what was given to it while it was closed: in the transaction of the drain all is seen
 * that was given before; what the next one sees beyond that was committed at or after the drain's epoch.
 */
async function drained(runnerId: RunnerId): Promise<string[]> {
  const close = async (state: string) =>
    db.begin(async (tx) => {
      await tx`update runner_intake set state = ${state}, epoch = epoch + 1 where runner_id = ${runnerId}`
      return given(tx, runnerId)
    })
  const before = new Set(await close('draining'))
  await pause(Math.random() * 8)
  return (await close('open')).filter((key) => !before.has(key))
}

async function storm(
  pool: { orgId: OrgId; poolId: PoolId },
  ask: QueuedAsk,
): Promise<{ late: string[]; claims: number }> {
  const runners: RunnerId[] = []
  for (let i = 0; i < RUNNERS; i++) runners.push(await aRunnerRow(db, pool, { slots: 4, labels: ['gpu'] }))
  const over = new AbortController()
  let claims = 0
  const claimers = Array.from({ length: CLAIMERS }, async () => {
    while (!over.signal.aborted) {
      const candidates = runners.map((runnerId) => ({ runnerId, slots: 2, share: 2 }))
      const { claimed } = await commitClaims(db, pool.poolId, { candidates, offerMs: 15_000 })
      claims += claimed.length
      if (claimed.length === 0 && (await waiting(pool.poolId)) === 0)
        await queuedRows(db, pool, Array<QueuedAsk>(QUEUED).fill(ask))
    }
  })
  const isEnough = (drains: number) => drains >= DRAINS / RUNNERS && claims > DRAINS
  const late: string[] = []
  const drains = runners.map(async (runnerId) => {
    // A busy machine claims less in the same time: the storm lasts until there were enough.
    for (let i = 0; !isEnough(i); i++) {
      await pause(Math.random() * 8)
      late.push(...(await drained(runnerId)))
    }
  })
  await Promise.all(drains).finally(() => over.abort())
  await Promise.all(claimers)
  return { late, claims }
}

test('in a storm of claims no runner is given anything at or after the epoch that closed it', async () => {
  const { late, claims } = await storm(await aPoolRow(db), {})
  assert.ok(claims > DRAINS, `${claims} claims are no storm`)
  assert.deepEqual(late, [])
})

test('nor is it where runs are chosen for their runners by labels and slots', async () => {
  const { late, claims } = await storm(await aPoolRow(db), { slots: 2, labels: ['gpu'] })
  assert.ok(claims > DRAINS, `${claims} claims are no storm`)
  assert.deepEqual(late, [])
})
