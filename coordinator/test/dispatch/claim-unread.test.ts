// A coordinator that stands still as the answer to its claim comes would keep the locks of the claim.
import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import { newId, type RunId } from '@windlass/shared/ids.ts'
import { openDatabase } from '../../db/client.ts'
import { claimPairs, claimPlain } from '../../engine/store/claim.ts'
import { testDatabase } from '../_kit/database.ts'
import { log } from '../_kit/embedded-home.ts'
import { aPoolRow, aRunnerRow, queuedRows } from '../_kit/queue.ts'
import { untilPolled } from '../_kit/until.ts'
import { aWay } from '../_kit/way.ts'

let database: Awaited<ReturnType<typeof testDatabase>>
before(async () => (database = await testDatabase()))
after(() => database.close())

const OFFER_MS = 10_000
/** More than the buffers of a connection take. */
const INPUT_CHARS = 8 * 1024 * 1024

async function aStill(t: TestContext) {
  const way = await aWay(database.url)
  const still = openDatabase({ url: way.url, max: 1, log })
  t.after(async () => {
    way.close()
    await still.close()
  })
  const pool = await aPoolRow(database.db)
  const runnerId = await aRunnerRow(database.db, pool, { slots: 1 })
  const claim = {
    plain: () =>
      claimPlain(still.db, pool.poolId, { candidates: [{ runnerId, slots: 1, share: 1 }], most: 1 }, OFFER_MS),
    chosen: (runId: RunId) => claimPairs(still.db, pool.poolId, [{ runId, runnerId, slots: 1 }], OFFER_MS),
  }
  return { way, pool, claim }
}

for (const how of ['plain', 'chosen'] as const)
  test(`a claim whose answer nobody takes is committed all the same (${how})`, async (t) => {
    const { db } = database
    const { way, pool, claim } = await aStill(t)
    // The statement is known to the server from then on: it is sent in one go.
    await claim[how](newId('run'))
    const [runId] = await queuedRows(db, pool, [{}])
    await db`update runs set input = to_json(repeat('x', ${INPUT_CHARS}))::text where id = ${runId!}`
    way.standStill()
    claim[how](runId!).catch(() => {})
    await untilPolled('others see the claim', async () => {
      const [run] = await db<{ status: string }[]>`select status from runs where id = ${runId!}`
      return run?.status === 'pending'
    })
    const [free] = await db`select from runs where id = ${runId!} for update nowait`
    assert.ok(free)
  })
