import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Database } from '../../db/client.ts'
import { openDatabase } from '../../db/client.ts'
import { claimPairs, claimPlain } from '../../engine/store/claim.ts'
import { untilBlocked } from '../_kit/blocked.ts'
import { testDatabase } from '../_kit/database.ts'
import { createExplained, explainSessions, stepsOf } from '../_kit/explained.ts'
import { aPoolRow, aRunnerRow, queuedRows } from '../_kit/queue.ts'

let database: Database
const explained = createExplained()
/** The connection of the claims. */
let claims: Database

before(async () => {
  database = await testDatabase()
  await explainSessions(database.db)
  claims = openDatabase({ url: database.url, max: 1, log: explained.log })
})
after(async () => {
  await claims.close()
  await database.close()
})

const OFFER_MS = 10_000
const MOST = 256
const RUNNERS = 16
const EACH = MOST / RUNNERS

async function aPool(runs: number) {
  const pool = await aPoolRow(database.db)
  const runners = await Promise.all(
    Array.from({ length: RUNNERS }, () => aRunnerRow(database.db, pool, { slots: EACH })),
  )
  const ids = await queuedRows(
    database.db,
    pool,
    Array.from({ length: runs }, () => ({})),
  )
  const candidates = runners.map((runnerId) => ({ runnerId, slots: EACH, share: EACH }))
  const pairs = ids.map((runId, i) => ({ runId, runnerId: runners[i % RUNNERS]!, slots: 1 }))
  const plain = () =>
    claimPlain(claims.db, pool.poolId, { candidates, most: MOST }, OFFER_MS).then(({ claimed }) => claimed)
  return { ids, plain, chosen: () => claimPairs(claims.db, pool.poolId, pairs, OFFER_MS) }
}

for (const how of ['plain', 'chosen'] as const) {
  test(`a claim of many runs compares none of them with all others (${how})`, async () => {
    const pool = await aPool(MOST)
    explained.take()
    const claimed = await pool[how]()
    assert.equal(claimed.length, MOST)
    const steps = explained.take().flatMap(({ plan }) => stepsOf(plan))
    assert.ok(steps.length > 10)
    const compared = steps.map((step) => (step['Rows Removed by Join Filter'] ?? 0) * step['Actual Loops'])
    assert.deepEqual(
      compared.filter((rows) => rows > MOST),
      [],
    )
  })

  test(`a claim that waits for a run decides by what the run is then (${how})`, async () => {
    const { ids, [how]: claim } = await aPool(3)
    const [first, second, third] = ids
    const { db } = database
    let claiming: ReturnType<typeof claim> | undefined
    await db.begin(async (tx) => {
      await tx`update runs set status = 'cancelled', finished_at = now() where id = ${second!}`
      claiming = claim()
      await untilBlocked(db, '%demands as %')
    })
    assert.deepEqual((await claiming)?.map(({ runId }) => runId).sort(), [first, third])
    const runs = await db<{ status: string; epoch: number; isPlaced: boolean; isQueued: boolean }[]>`
      select r.status, r.epoch, p.run_id is not null as is_placed, q.run_id is not null as is_queued
      from runs r
      left join placements p on p.run_id = r.id
      left join run_queue q on q.run_id = r.id
      where r.id = any(${ids})
      order by r.id`
    const given = { status: 'pending', epoch: 1, isPlaced: true, isQueued: false }
    assert.deepEqual([...runs], [given, { status: 'cancelled', epoch: 0, isPlaced: false, isQueued: false }, given])
  })
}
