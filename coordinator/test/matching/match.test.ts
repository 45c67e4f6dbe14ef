import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import * as fc from 'fast-check'
import { repeatable } from '@windlass/shared/test/_kit/repeated.ts'
import { newId, type PoolId, type RunId, type RunnerId } from '@windlass/shared/ids.ts'
import { type Database, type Db } from '../../db/client.ts'
import { commitClaims } from '../../engine/commit/claims.ts'
import { hasBit, indexesOf, readCarriers } from '../../matching/carriers.ts'
import { match } from '../../matching/match.ts'
import { claimPlain, type ClaimCandidate } from '../../engine/store/claim.ts'
import type { QueueHead } from '../../matching/candidate.ts'
import { lines, queueHeads } from '../../engine/store/queue-heads.ts'
import { needsText, readNeeds } from '../../matching/needs.ts'
import { testDatabase } from '../_kit/database.ts'
import { aPoolRow, aRunnerRow, type QueuedAsk, queuedRows, type RunnerAsk } from '../_kit/queue.ts'
import { rowsRead } from '../_kit/rows-read.ts'
import { turnsBeside } from '../_kit/turns.ts'

let database: Database
let db: Db

before(async () => {
  database = await testDatabase()
  ;({ db } = database)
})
after(() => database.close())

const LABELS = ['gpu', 'arm', 'zone:eu']
const labels = fc.subarray(LABELS)
const aRun = fc.record({ slots: fc.integer({ min: 1, max: 4 }), labels, priority: fc.integer({ min: -1, max: 1 }) })
const aRunner = fc.record({
  slots: fc.integer({ min: 1, max: 6 }),
  labels,
  state: fc.constantFrom('open', 'open', 'open', 'cordoned', 'draining', 'revoked'),
}) satisfies fc.Arbitrary<RunnerAsk>

test('what a run needs is one text, and comes back as it was', (t) => {
  assert.equal(needsText({ slots: 1, labels: [] }), '')
  assert.equal(needsText({ slots: 4, labels: ['zone:eu', 'gpu'] }), '4|gpu,zone:eu')
  fc.assert(
    fc.property(fc.integer({ min: 1, max: 1024 }), labels, (slots, some) => {
      assert.deepEqual(readNeeds(needsText({ slots, labels: some })), { slots, labels: some.toSorted() })
    }),
    repeatable(t),
  )
})

type Asked = { id: RunId } & Required<Omit<QueuedAsk, 'concurrencyGroup'>>
type Asking = { id: RunnerId } & Required<Pick<RunnerAsk, 'slots' | 'labels' | 'state'>>

const inOrder = (a: Asked, b: Asked) => b.priority - a.priority

/** By trying each with each: everything given is allowed, and nothing was passed over for which there was room at its turn. */
function check(runs: Asked[], runners: Asking[], poolLabels: string[], given: Map<string, string>): void {
  const free = new Map(runners.map(({ id, slots, state }) => [id, state === 'open' ? slots : 0]))
  const fits = (run: Asked, runner: Asking) =>
    free.get(runner.id)! >= run.slots &&
    run.labels.every((label) => runner.labels.includes(label) || poolLabels.includes(label))
  for (const run of runs.toSorted(inOrder)) {
    const to = runners.find((runner) => runner.id === given.get(run.id))
    const able = runners.filter((runner) => fits(run, runner))
    if (!to) assert.deepEqual(able, [], `${JSON.stringify(run)} was passed over`)
    else assert.ok(able.includes(to), `${JSON.stringify(run)} was given to ${JSON.stringify(to)}`)
    if (to) free.set(to.id, free.get(to.id)! - run.slots)
  }
}

test('in random pools each run in its turn goes to a runner with its labels and room for it', async (t) => {
  const scenario = fc.record({
    runs: fc.array(aRun, { maxLength: 24 }),
    runners: fc.array(aRunner, { minLength: 1, maxLength: 5 }),
    poolLabels: fc.subarray(['arm']),
  })
  await fc.assert(
    fc.asyncProperty(scenario, async ({ runs, runners, poolLabels }) => {
      const pool = await aPoolRow(db, { labels: poolLabels })
      const asking: Asking[] = []
      for (const one of runners) asking.push({ ...one, id: await aRunnerRow(db, pool, one) })
      const ids = await queuedRows(db, pool, runs)
      // The queue keeps the order of the ids where one statement brings several.
      const asked = runs.map((run, i) => ({ ...run, id: ids[i]! }))
      const candidates = asking.map(({ id, slots }): ClaimCandidate => ({ runnerId: id, slots, share: slots }))
      const { claimed } = await commitClaims(db, pool.poolId, { candidates, offerMs: 15_000 })
      check(asked, asking, poolLabels, new Map(claimed.map((run) => [run.runId, run.runnerId])))
      await agreesWith(pool.poolId, asked, claimed)
    }),
    { numRuns: 150, ...repeatable(t) },
  )
})

/** What is placed says what it occupies, and is in no queue any more. */
async function agreesWith(poolId: PoolId, asked: Asked[], claimed: { runId: RunId }[]): Promise<void> {
  const placed = await db<{ runId: RunId; slots: number }[]>`
    select run_id, slots from placements where run_id = any(${asked.map((run) => run.id)}) order by run_id`
  const expected = asked
    .filter((run) => claimed.some((one) => one.runId === run.id))
    .map(({ id, slots }) => ({ runId: id, slots }))
    .toSorted((a, b) => (a.runId < b.runId ? -1 : 1))
  assert.deepEqual(
    placed.map((row) => ({ ...row })),
    expected,
  )
  const [{ left }] = await db<[{ left: number }]>`select count(*)::int as left from run_queue where pool_id = ${poolId}`
  assert.equal(left, asked.length - claimed.length)
}

test('of a long queue only its beginning is read, whatever is asked of it', async () => {
  const pool = await aPoolRow(db)
  const { poolId } = pool
  const runnerId = await aRunnerRow(db, pool, { slots: 4, labels: ['gpu'] })
  await db`
    insert into run_queue (run_id, pool_id, priority, needs)
    select 'run_' || i, ${poolId}, i % 3, case when i % 1000 = 0 then '2|gpu' when i % 1001 = 0 then '1|arm' else '' end
    from generate_series(1, 5000) i`
  const needs = ['', '1|arm', '2|gpu']
  const readBy = async (look: (sql: Db) => Promise<readonly unknown[]>) => (await rowsRead(db, 'run_queue', look)).read
  assert.ok((await readBy((sql) => lines(sql, poolId, { most: 9 }))) <= 4)
  assert.deepEqual(await lines(db, poolId, { most: 2 }), needs.slice(0, 2))
  assert.deepEqual(await lines(db, poolId, { most: 2, after: '1|arm' }), needs.slice(2))
  assert.ok((await readBy((sql) => queueHeads(sql, poolId, { needs, each: 10, oldMs: 1 }))) <= 33)
  await db`delete from run_queue where needs <> ''`
  const ask = { candidates: [{ runnerId, slots: 4, share: 4 }], most: 4 }
  const claimed = await readBy(async (sql) => (await claimPlain(sql, poolId, ask, 15_000)).claimed)
  assert.ok(claimed <= 20, `${claimed} rows of the queue were read`)
  await db`delete from run_queue where pool_id = ${poolId}`
})

const aHead = (needs: string, position: number, isOld = false): QueueHead => {
  return { runId: newId('run'), needs, isResume: false, priority: 0, position, isOld }
}

test('what may follow in a line that was cut off is not overtaken', async () => {
  const runner = { runnerId: newId('rnr'), labels: ['gpu'], free: 9 }
  const heads = [aHead('1|gpu', 1), aHead('1|gpu', 2), aHead('', 9)]
  assert.equal((await match({ heads, candidates: [runner], each: 2, most: 99 })).pairs.length, 2)
  assert.equal((await match({ heads, candidates: [runner], each: 3, most: 99 })).pairs.length, 3)
  // What fits nowhere holds up nobody, cut off or not.
  const elsewhere = { ...runner, labels: [] }
  assert.deepEqual(
    (await match({ heads, candidates: [elsewhere], each: 2, most: 99 })).pairs.map((pair) => pair.runId),
    [heads[2]!.runId],
  )
})

test('runs without labels leave the runners that carry some to others', async () => {
  const [plain, special] = [newId('rnr'), newId('rnr')]
  const candidates = [
    { runnerId: special, labels: ['gpu'], free: 1 },
    { runnerId: plain, labels: [], free: 1 },
  ]
  const heads = [aHead('', 1), aHead('1|gpu', 2)]
  assert.deepEqual(
    (await match({ heads, candidates, each: 9, most: 9 })).pairs.map((pair) => pair.runnerId),
    [plain, special],
  )
})

test('a run that has waited long keeps the runner with most room; what goes before it keeps its right', async () => {
  const [small, large, other] = [newId('rnr'), newId('rnr'), newId('rnr')]
  const workers = [
    { runnerId: small, labels: [], slots: 2, free: 2 },
    { runnerId: large, labels: [], slots: 4, free: 3 },
    { runnerId: other, labels: [], slots: 4, free: 1 },
  ]
  const candidates = workers.map(({ runnerId, labels: own, free }) => ({ runnerId, labels: own, free }))
  const [first, big, ...rest] = [aHead('', 1), aHead('4|', 2, true), aHead('', 3), aHead('', 4), aHead('', 5)]
  const heads = [first, big, ...rest]
  const ask = { heads, candidates, each: 9, most: 9 }
  assert.equal((await match(ask)).isStarving, true)
  const { pairs } = await match({ ...ask, workers })
  // Before the big one any runner may be taken; after it, all but the one that is kept.
  assert.equal(pairs.length, 4)
  assert.deepEqual(
    pairs.slice(1).filter((pair) => pair.runnerId === large),
    [],
  )
  const young = await match({ ...ask, heads: heads.map((head) => ({ ...head, isOld: false })) })
  assert.deepEqual([young.isStarving, young.pairs.length], [false, 4])
  assert.ok(young.pairs.slice(1).some((pair) => pair.runnerId === large))
})

/** A head for each line, all of them with labels of their own. */
const hungryHeads = (count: number): QueueHead[] =>
  Array.from({ length: count }, (_, i) => aHead(`2|arm,gpu,zone:${i}`, i, true))

test('the labels of a runner are read a few times, however many lines ask for others', async () => {
  let read = 0
  const counted = (): string[] => {
    const labels = ['arm', 'gpu', 'zone:eu']
    return Object.assign(labels, {
      includes: (label: string) => (read++, labels.indexOf(label) !== -1),
      [Symbol.iterator]: () => (read++, Array.prototype[Symbol.iterator].call(labels)),
    })
  }
  const workers = Array.from({ length: 50 }, () => ({ runnerId: newId('rnr'), labels: counted(), slots: 2, free: 0 }))
  const { isStarving } = await match({ heads: hungryHeads(40), candidates: workers, each: 8, most: 9, workers })
  assert.equal(isStarving, true)
  assert.ok(read <= 4 * workers.length, `${read} reads`)
})

test('others have their turns while many lines are matched', async (t) => {
  const ask = { heads: hungryHeads(40), candidates: [], each: 8, most: 9, workers: [] }
  const turns = await turnsBeside(t, () => match(ask))
  assert.ok(turns >= 39, `${turns} turns`)
})

const aWorker = fc.record({ labels: fc.array(fc.constantFrom(...LABELS), { maxLength: 4 }) })

test('who carries labels is whom a look at each of them finds', async (t) => {
  await fc.assert(
    fc.asyncProperty(fc.array(aWorker, { maxLength: 70 }), labels, async (workers, asked) => {
      const bits = (await readCarriers(workers, new Set(LABELS)))(asked)
      const found = workers.flatMap((worker, i) => (asked.every((one) => worker.labels.includes(one)) ? [i] : []))
      assert.deepEqual([...indexesOf(bits)], found)
      assert.deepEqual(
        workers.flatMap((_, i) => (hasBit(bits, i) ? [i] : [])),
        found,
      )
    }),
    repeatable(t),
  )
})

/** One runner with 4 slots whose runs end one at a time, while small ones come all the time. Answers after how many ends the big one began. */
async function endsUntilBig(waitedSeconds: number): Promise<number | undefined> {
  const pool = await aPoolRow(db)
  const runnerId = await aRunnerRow(db, pool, { slots: 4 })
  await queuedRows(db, pool, [{}, {}, {}, {}])
  const poll = (slots: number) =>
    commitClaims(db, pool.poolId, { candidates: [{ runnerId, slots, share: slots }], offerMs: 15_000 })
  const executing = (await poll(4)).claimed.map((run) => run.runId)
  const [big] = await queuedRows(db, pool, [{ slots: 4 }])
  await db`update run_queue set entered_at = now() - ${waitedSeconds} * interval '1 second' where run_id = ${big!}`
  for (let ends = 1; ends <= 12; ends++) {
    const ended = executing.shift()!
    await db`delete from placements where run_id = ${ended}`
    await queuedRows(db, pool, [{}])
    const { claimed } = await poll(4 - executing.length)
    if (claimed.some((run) => run.runId === big)) return ends
    executing.push(...claimed.map((run) => run.runId))
  }
  return undefined
}

test('a run that needs a whole runner begins although small ones come without end', async () => {
  assert.equal(await endsUntilBig(31), 4)
  // So it would go otherwise.
  assert.equal(await endsUntilBig(0), undefined)
})

test('agents that cannot do what their pool demands, and runners that are forgotten or in quarantine, get nothing', async () => {
  const cases: [settings: object, runner: RunnerAsk, takes: boolean][] = [
    [{ isolation: 'bubblewrap' }, {}, false],
    [{ isolation: 'bubblewrap' }, { capabilities: ['bubblewrap'] }, true],
    [{ network: 'none' }, { capabilities: ['cgroup'] }, false],
    [{ limits: { memoryMb: 512 } }, {}, true],
  ]
  for (const [settings, runner, takes] of cases) {
    for (const needs of [{}, { slots: 1, labels: ['gpu'] }]) {
      const pool = await aPoolRow(db, { labels: ['gpu'], ...settings })
      const runnerId = await aRunnerRow(db, pool, runner)
      await queuedRows(db, pool, [needs])
      const { claimed } = await commitClaims(db, pool.poolId, {
        candidates: [{ runnerId, slots: 1, share: 1 }],
        offerMs: 15_000,
      })
      assert.equal(claimed.length === 1, takes, JSON.stringify([settings, runner, needs]))
    }
  }
  const pool = await aPoolRow(db)
  const runnerId = await aRunnerRow(db, pool)
  await queuedRows(db, pool, [{}])
  const poll = async () =>
    (await commitClaims(db, pool.poolId, { candidates: [{ runnerId, slots: 1, share: 1 }], offerMs: 15_000 })).claimed
      .length
  await db`update runner_intake set quarantined_until = now() + interval '1 minute' where runner_id = ${runnerId}`
  assert.equal(await poll(), 0)
  await db`update runner_intake set quarantined_until = now() - interval '1 second' where runner_id = ${runnerId}`
  await db`update runners set deregistered_at = now() where id = ${runnerId}`
  assert.equal(await poll(), 0)
  await db`update runners set deregistered_at = null where id = ${runnerId}`
  assert.equal(await poll(), 1)
})
