import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId, type RunId } from '@windlass/shared/ids.ts'
import { createLog } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'
import { type Database, type Db, openDatabase } from '../../db/client.ts'
import { createTimerFloor, settledPosition } from '../../engine/commit/floors.ts'
import { append } from '../../engine/store/append.ts'
import { claimPairs, claimPlain } from '../../engine/store/claim.ts'
import * as concurrency from '../../engine/store/concurrency.ts'
import * as store from '../../engine/store/floors.ts'
import * as journal from '../../engine/store/journal.ts'
import { beat } from '../../engine/store/leases.ts'
import { accept, among } from '../../engine/store/placements.ts'
import { lines, oldAmong, queueHeads } from '../../engine/store/queue-heads.ts'
import { insertLosses, noteAcks } from '../../engine/store/run-losses.ts'
import * as runs from '../../engine/store/runs.ts'
import * as timers from '../../engine/store/timers.ts'
import { testDatabase } from '../_kit/database.ts'
import { createExplained, explainSessions, type PlanNode } from '../_kit/explained.ts'

const orgId = newId('org')
const poolId = newId('pool')
const runnerId = newId('rnr')
const MINUTE = 60_000
const log = createLog({}, 'error')

let database: Database
let db: Db
/** Explains itself. */
let observed: Database
const explained = createExplained()

before(async () => {
  database = await testDatabase()
  db = database.db
  await explainSessions(db)
  observed = openDatabase({ url: database.url, max: 1, log: explained.log })
  await observed.db`select 1`
})
after(async () => {
  await observed?.close()
  await database?.close()
})

/** Blocks that this reads, which belong to dead rows where there are no others. */
async function blocksOf(act: (sql: Db) => PromiseLike<unknown>): Promise<number> {
  explained.take()
  await act(observed.db)
  // Within a transaction a statement is explained when the next one begins.
  await observed.db`show timezone`
  const plans = explained.take()
  assert.ok(plans.length > 0)
  const blocks = (plan: PlanNode) => (plan['Shared Hit Blocks'] ?? 0) + (plan['Shared Read Blocks'] ?? 0)
  return plans.reduce((sum, { plan }) => sum + blocks(plan), 0)
}

const GONE = 20_000
const SHORT_LIVED = ['timers', 'run_queue', 'placements', 'concurrency_slots', 'concurrency_waiters']

/**
 * So many timers and runs that came and went, while somebody reads the database in one snapshot. Half of the timers
 * were not due: time limits of runs that have ended.
 */
async function whileDumped(act: () => Promise<void>): Promise<void> {
  const dump = openDatabase({ url: database.url, max: 1, log })
  try {
    await dump.db.begin('isolation level repeatable read read only', async (tx) => {
      await tx`set local idle_in_transaction_session_timeout = 0`
      await tx`select count(*) from orgs`
      await db.begin(async (other) => {
        await other`
          insert into timers (run_id, org_id, kind, n, due_at)
          select 'run_' || i, ${orgId}, 'sleep', 1, now() + (i % 2 * 2 - 1) * interval '1 minute'
          from generate_series(1, 2 * ${GONE}::int) i`
        await other`
          insert into run_queue (run_id, pool_id, priority, needs)
          select 'run_' || i, ${poolId}, i % 3, case i % 2 when 0 then '' else '1|gpu' end
          from generate_series(1, ${GONE}::int) i`
        await other`
          insert into placements (run_id, runner_id, epoch, lease_expires_at)
          select 'run_' || i, ${runnerId}, 1, now() from generate_series(1, ${GONE}::int) i`
        await other`
          insert into concurrency_slots (run_id, group_key)
          select 'run_' || i, 'group ' || i % 9 from generate_series(1, ${GONE}::int) i`
        await other`
          insert into concurrency_waiters (run_id, group_key, pool_id, slots, priority)
          select 'run_' || i, 'group ' || i % 9, ${poolId}, 1, 0 from generate_series(1, ${GONE}::int) i`
      })
      for (const table of SHORT_LIVED) await db`delete from ${db(table)}`
      // As autovacuum does: from here on the planner takes them for empty.
      await db`analyze ${db(SHORT_LIVED)}`
      await act()
    })
  } finally {
    await dump.close()
  }
}

test('taking timers reads those alone, however many came due since the planner looked', async () => {
  const ids = Array.from({ length: GONE }, (_, n) => `run_due_${n}`)
  try {
    await db`
      insert into timers (run_id, org_id, kind, n, due_at)
      select id, ${orgId}, 'sleep', 1, now() + interval '1 hour' from unnest(${ids}::text[]) id`
    await db`analyze timers`
    const some = ids.slice(0, 200).map((id) => ({ runId: id as RunId, kind: 'sleep' as const, n: 1 }))
    const indexes = async (): Promise<unknown[]> => {
      explained.take()
      await observed.db.begin((tx) => timers.take(tx, some))
      await observed.db`show timezone`
      const of = (node: PlanNode): unknown[] => [node['Index Name'], ...(node.Plans ?? []).flatMap(of)]
      return explained.take().flatMap(({ plan }) => of(plan))
    }
    // A plan is kept, and is made while none of them is due.
    assert.ok((await indexes()).length > 0)
    await db`update timers set due_at = now() - interval '1 minute' where org_id = ${orgId}`
    assert.deepEqual((await indexes()).filter(Boolean), ['timers_pkey'])
  } finally {
    await db`delete from timers`
  }
})

test('what came and went while an old snapshot is held is passed over by nobody', async () => {
  await whileDumped(async () => {
    const position = await settledPosition(db, new AbortController().signal)
    assert.ok(position !== undefined)
    assert.equal(await store.firstPosition(db, poolId, position), null)
    const floor = position + 1
    const due = await store.firstDue(db)
    const runId = newId('run')
    const other = newId('rnr')
    const ask = { candidates: [{ runnerId, slots: 1, share: 1 }], most: 1, floor }
    const acts: Record<string, (sql: Db) => PromiseLike<unknown>> = {
      'the look for timers': (sql) => timers.upcoming(sql, 200, undefined, due),
      'taking a timer': (sql) => sql.begin((tx) => timers.take(tx, [{ runId: newId('run'), kind: 'sleep', n: 1 }])),
      'the end of an entry': (sql) =>
        sql.begin(async (tx) => {
          await journal.complete(tx, [])
        }),
      'a claim': (sql) => claimPlain(sql, poolId, ask, 1000),
      'a look for lines': (sql) => lines(sql, poolId, { most: 9, floor }),
      'a look at lines': (sql) => queueHeads(sql, poolId, { needs: ['', '1|gpu'], each: 9, oldMs: 1, floor }),
      'a claim of chosen pairs': (sql) => claimPairs(sql, poolId, [{ runId, runnerId: other, slots: 1 }], 1000),
      'a look at what runners are kept for': (sql) => oldAmong(sql, poolId, { runIds: [runId], oldMs: 1 }),
      'putting a timer off': (sql) => timers.putOff(sql, [{ runId, kind: 'sleep', n: 1 }], 1000),
      'entering later': (sql) => sql.begin((tx) => timers.enterLater(tx, [{ id: runId, inMs: 1000 }])),
      'a wake': (sql) => sql.begin(async (tx) => void (await runs.enterAsResume(tx, []))),
      'an acceptance': (sql) => accept(sql, [{ runId, runnerId: other, epoch: 1, leaseMs: 1000 }]),
      'a heartbeat': (sql) => beat(sql, [{ runnerId: other, holds: [[runId, 1]], leaseMs: 1000 }]),
      'an ending': (sql) => sql.begin(async (tx) => void (await runs.release(tx, []))),
      'a first in line': (sql) => sql.begin(async (tx) => void (await concurrency.requeue(tx, [runId]))),
      'a last in line': (sql) => sql.begin(async (tx) => void (await concurrency.wait(tx, [runId]))),
      'who is let in': (sql) => sql.begin(async (tx) => void (await concurrency.admit(tx, ['another group']))),
      'a report': (sql) =>
        append(sql, [{ runId, runnerId: other, epoch: 1, first: 1, last: 1, events: [], entries: [], chars: 0 }]),
      'its note': (sql) => sql.begin(async (tx) => void (await noteAcks(tx, []))),
      'a loss': (sql) => sql.begin(async (tx) => void (await insertLosses(tx, []))),
      'a greeting': (sql) => among(sql, other, [[runId, 1]]),
      'who leaves': (sql) => sql.begin(async (tx) => void (await concurrency.remove(tx, [runId]))),
    }
    const read: string[] = []
    for (const [name, act] of Object.entries(acts)) {
      const blocks = await blocksOf(act)
      if (blocks >= 300) read.push(`${name} reads ${blocks} blocks`)
    }
    assert.deepEqual(read, [])
  })
})

test('no run appears below a position that is settled', async () => {
  const runId = newId('run')
  let isCommitted = false
  const begun = Promise.withResolvers<void>()
  const writing = db.begin(async (tx) => {
    await tx`insert into run_queue (run_id, pool_id, priority) values (${runId}, ${poolId}, 0)`
    begun.resolve()
    await pause(2500)
    isCommitted = true
  })
  await begun.promise
  const position = await settledPosition(db, new AbortController().signal)
  assert.ok(isCommitted, 'who has a position is waited for')
  await writing
  const [row] = await db<{ position: number }[]>`
    select position::float8 as position from run_queue where run_id = ${runId}`
  assert.equal(await store.firstPosition(db, poolId, position!), row?.position)
  const stopping = new AbortController()
  stopping.abort()
  assert.equal(await settledPosition(db, stopping.signal), undefined)
  await db`delete from run_queue where run_id = ${runId}`
})

test('the look for timers begins before all that are due, and before what is being set', async () => {
  const now = async () => (await db<[{ at: number }]>`select extract(epoch from now())::float8 * 1000 as at`)[0].at
  assert.ok((await store.firstDue(db)) < (await now()) - 29_000, 'who sets one now may have begun earlier')
  const at = Math.round(await now()) - 10 * MINUTE
  const runId = newId('run')
  await db`
    insert into timers (run_id, org_id, kind, n, due_at)
    values (${runId}, ${orgId}, 'sleep', 1, to_timestamp(${at}::float8 / 1000))`
  const first = await store.firstDue(db)
  assert.ok(first <= at && first > at - 1000, `${first} for ${at}`)
  const found = async (floor: number) => (await timers.upcoming(db, 10, undefined, floor)).map((one) => one.runId)
  assert.deepEqual(await found(first), [runId])
  assert.deepEqual(await found(at), [runId])
  assert.deepEqual(await found(at + MINUTE), [])
  // The clock of the database was set back since: what is set by it now is found.
  await db`update timers set due_at = now() - interval '20 seconds'`
  assert.deepEqual(await found((await now()) + 60 * MINUTE), [runId])
  await db`delete from timers`
})

/** It takes so long to look from the very beginning, or from a floor. */
const SLOW_MS = 60

async function raised(firstDue: () => Promise<number>) {
  const floor = createTimerFloor({ log, databaseClock: Date }, async () => {
    await pause(SLOW_MS)
    return firstDue()
  })
  const at = () => floor.begin((from) => Promise.resolve(from))
  return { floor, at, slow: () => floor.begin(() => pause(SLOW_MS)) }
}

test('a floor is found when looks are slow, and goes down before a timer below it is committed', async () => {
  const { floor, at, slow } = await raised(() => Promise.resolve(5000))
  assert.equal(await at(), -Infinity)
  await floor.idle()
  assert.equal(await at(), -Infinity, 'looks are fast')
  await slow()
  await floor.idle()
  assert.equal(await at(), 5000)
  floor.lower(9000)
  assert.equal(await at(), 5000)
  floor.lower(3000)
  assert.equal(await at(), 3000)
})

test('a look that began before a timer was committed does not hide it', async () => {
  const asked = Promise.withResolvers<void>()
  const answer = Promise.withResolvers<number>()
  const { floor, at, slow } = await raised(() => {
    asked.resolve()
    return answer.promise
  })
  await slow()
  await asked.promise
  floor.lower(3000)
  floor.lower(Date.now())
  answer.resolve(5000)
  await floor.idle()
  assert.equal(await at(), 3000)
})

test('sleeps that are not over when they are set hold no floor back', async () => {
  const since = Date.now()
  const { floor, at, slow } = await raised(() => Promise.resolve(since + 1000))
  floor.lower(since)
  await slow()
  await floor.idle()
  assert.equal(await at(), since + 1000)
})

test('a slow look that fails has found its floor all the same, and a fast one needs none', async () => {
  const { floor, at } = await raised(() => Promise.resolve(5000))
  await assert.rejects(
    floor.begin(async () => {
      await pause(SLOW_MS)
      throw new Error('statement timeout')
    }),
    /statement timeout/,
  )
  await floor.idle()
  assert.equal(await at(), 5000)
  const cheap = createTimerFloor({ log, databaseClock: Date }, () => Promise.resolve(5000))
  await cheap.begin(() => pause(SLOW_MS))
  await cheap.idle()
  assert.equal(await cheap.begin((from) => Promise.resolve(from)), -Infinity)
})
