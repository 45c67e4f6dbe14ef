// A pool in which runs with very many different needs wait.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { RunId } from '@windlass/shared/ids.ts'
import type { Database, Db } from '../../db/client.ts'
import { type ClaimAnswer, commitClaims } from '../../engine/commit/claims.ts'
import { testDatabase } from '../_kit/database.ts'
import { aPoolRow, aRunnerRow, queuedRows } from '../_kit/queue.ts'

let database: Database
let db: Db

before(async () => {
  database = await testDatabase()
  ;({ db } = database)
})
after(() => database.close())

test('of many lines each has its turn, until a round has found nothing', async () => {
  const pool = await aPoolRow(db)
  const runnerId = await aRunnerRow(db, pool, { slots: 9, labels: ['gpu', 'arm'] })
  // Lines stand in the order of their texts: the first, 600 that fit nowhere, the last.
  const first = await queuedRows(db, pool, [{ labels: ['arm'] }])
  const others = Array.from({ length: 600 }, (_, i) => ({ slots: 2, labels: [`mac${i}`] }))
  await queuedRows(db, pool, others)
  const last = await queuedRows(db, pool, [{ slots: 3, labels: ['gpu'] }])
  const answers: ClaimAnswer[] = []
  for (let isMore = true; isMore && answers.length < 20;) {
    const ask = { candidates: [{ runnerId, slots: 4, share: 4 }], offerMs: 15_000, round: answers.at(-1)?.round }
    const answer = await commitClaims(db, pool.poolId, ask)
    answers.push(answer)
    ;({ isMore } = answer)
  }
  const given = answers.map(({ claimed }) => claimed.map(({ runId }) => runId))
  // Three pieces with 602 lines, and another three, as something was found in the round before.
  assert.deepEqual(given, [first, [], last, [], [], []])
})

test('a runner is kept for a run of several slots, in whatever of many lines it waits', async () => {
  const labels = Array.from({ length: 300 }, (_, i) => `l${100 + i}`)
  const pool = await aPoolRow(db)
  const runnerId = await aRunnerRow(db, pool, { slots: 4, labels })
  const first = labels.slice(0, 4).map((label) => ({ labels: [label] }))
  await queuedRows(db, pool, first)
  let round: ClaimAnswer['round']
  const poll = async (slots: number) => {
    const given: RunId[] = []
    for (let isMore = true; isMore && given.length < slots;) {
      const free = slots - given.length
      const ask = { candidates: [{ runnerId, slots: free, share: free }], offerMs: 15_000, round }
      const answer = await commitClaims(db, pool.poolId, ask)
      given.push(...answer.claimed.map(({ runId }) => runId))
      ;({ round, isMore } = answer)
    }
    return given
  }
  const executing = await poll(4)
  const [big] = await queuedRows(db, pool, [{ slots: 4 }])
  await db`update run_queue set entered_at = now() - interval '40 seconds' where run_id = ${big!}`
  // They come behind it.
  const small = labels.map((label) => ({ labels: [label] }))
  await queuedRows(db, pool, small)
  let ends = 0
  while (!executing.includes(big!) && ends < 12) {
    await db`delete from placements where run_id = ${executing.shift()!}`
    ends += 1
    executing.push(...(await poll(4 - executing.length)))
  }
  // Some went before its line had its turn.
  assert.ok(ends <= 6, `it began after ${ends} ends`)
})
