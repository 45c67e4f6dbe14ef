// A pool in which runs with very many different needs wait.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { RunId, RunnerId } from '@windlass/shared/ids.ts'
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

type Pool = Awaited<ReturnType<typeof aPoolRow>>

/** Asks for work as one runner does, until nothing comes or it is full. Answers what it was given. */
function poller({ poolId }: Pool, runnerId: RunnerId) {
  let round: ClaimAnswer['round']
  return async (free: number): Promise<RunId[]> => {
    const given: RunId[] = []
    for (let isMore = true; isMore;) {
      const slots = free - (await slotsOf(given))
      if (slots === 0) break
      const ask = { candidates: [{ runnerId, slots, share: slots }], offerMs: 15_000, round }
      const answer = await commitClaims(db, poolId, ask)
      given.push(...answer.claimed.map(({ runId }) => runId))
      ;({ round, isMore } = answer)
    }
    return given
  }
}

async function slotsOf(runs: readonly RunId[]): Promise<number> {
  const [{ slots }] = await db<[{ slots: number }]>`
    select coalesce(sum(slots), 0)::int as slots from placements where run_id = any(${[...runs]}::text[])`
  return slots
}

const hasWaited = (runs: readonly RunId[]) =>
  db`update run_queue set entered_at = now() - interval '40 seconds' where run_id = any(${[...runs]}::text[])`

test('a runner is kept for a run of several slots, in whatever of many lines it waits', async () => {
  const labels = Array.from({ length: 300 }, (_, i) => `l${100 + i}`)
  const pool = await aPoolRow(db)
  const runnerId = await aRunnerRow(db, pool, { slots: 4, labels })
  const first = labels.slice(0, 4).map((label) => ({ labels: [label] }))
  await queuedRows(db, pool, first)
  const poll = poller(pool, runnerId)
  const executing = await poll(4)
  const [big] = await queuedRows(db, pool, [{ slots: 4 }])
  await hasWaited([big!])
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

test('two large runs in different pieces of the lines do not keep one runner from each other', async () => {
  const labels = Array.from({ length: 150 }, (_, i) => `l${100 + i}`)
  const pool = await aPoolRow(db)
  const runnerId = await aRunnerRow(db, pool, { slots: 4, labels })
  const small = labels.map((label) => ({ labels: [label] }))
  await queuedRows(db, pool, small.slice(0, 4))
  const poll = poller(pool, runnerId)
  const executing = await poll(4)
  const large = await queuedRows(db, pool, [{ slots: 2 }, { slots: 4 }])
  await hasWaited(large)
  // They come behind, and nobody carries the labels of the second half: the 256th line stands between the large ones.
  await queuedRows(db, pool, small)
  await queuedRows(
    db,
    pool,
    small.map((_, i) => ({ slots: 3, labels: [`x${i}`] })),
  )
  const begun: RunId[] = []
  for (let ends = 0; ends < 20 && begun.length < 2; ends++) {
    const ended = executing.shift()
    if (ended) await db`delete from placements where run_id = ${ended}`
    const given = await poll(4 - (await slotsOf(executing)))
    begun.push(...given.filter((runId) => large.includes(runId)))
    executing.push(...given)
  }
  assert.deepEqual(begun, large)
  const others = await poll(4 - (await slotsOf(executing)))
  assert.deepEqual(others, [])
  await db`delete from placements where run_id = any(${executing}::text[])`
  assert.equal((await poll(4)).length, 4)
})
