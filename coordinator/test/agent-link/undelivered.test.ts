import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { moment } from '@windlass/shared/test/_kit/until.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { type Offer, PROTOCOL_NAME } from '@windlass/shared/wire/agent.ts'
import { wakesFor } from '../../engine/commit/wakes.ts'
import * as journal from '../../engine/store/undelivered.ts'
import { anAgent, placementOf, takeNext, type TestAgent } from '../_kit/agent.ts'
import { countBlocked, untilBlocked } from '../_kit/blocked.ts'
import { aCoordinatorOfItsOwn, aRun, type TestCoordinator } from '../_kit/coordinator.ts'
import { rowsRead } from '../_kit/rows-read.ts'
import { aWorkflow } from '../_kit/workflow.ts'

// What an agent has not been given is looked up when it connects, with heartbeats, and when runs are resumed: by agents
// that are up to mischief as often as they like.

const NOTHING: journal.UndeliveredAsk = { cursors: new Map() }
const MANY = 3000
/** In one look. */
const MOST = 2000

let c: TestCoordinator
let agent: TestAgent
let offers: Offer[] = []

before(async () => {
  c = await aCoordinatorOfItsOwn()
  await aWorkflow(c, { slug: 'any' })
  agent = await anAgent(c)
  const link = await agent.connect()
  for (let n = 0; n < 3; n++) await aRun(c, { workflow: 'any' })
  offers = [await takeNext(agent, link), await takeNext(agent, link), await takeNext(agent, link)]
  const [first, second, third] = offers.map(({ run }) => run)
  await complete(first!, 1, 1, MANY)
  await complete(second!, 1, 1, MANY)
  // Of an attempt of before, which nobody is given any more.
  await complete(second!, 0, MANY + 1, 2 * MANY)
  await complete(third!, 1, 1, 3)
})
after(async () => {
  agent.close()
  await c.stop()
})

/** Sleeps of a run that are over and that its program has not been given. The last one ended first. */
async function complete(run: string, attempt: number, from: number, to: number): Promise<void> {
  await c.db`
    insert into journal (run_id, n, attempt, position, parent, kind, name, hash, occurrence, args, site, state, result,
                         completed_at, completion)
    select ${run}, n, ${attempt}::int, n, '', 'sleep', '', 'h', n, '[]', 'index.ts:1:1', 'done', 'null', now(),
           nextval('journal_completions')
    from (select n from generate_series(${to}::int, ${from}::int, -1) as n) in_order`
}

test('of very many results no more are read than are numbers, with a share for each run', async () => {
  let found: Awaited<ReturnType<typeof journal.undelivered>> = []
  const [{ partition }] = await c.db<[{ partition: string }]>`
    select tableoid::regclass::text as partition from journal where run_id = ${offers[0]!.run} limit 1`
  const { read } = await rowsRead(
    c.db,
    partition,
    async (db) => (found = await journal.undelivered(db, agent.id, NOTHING)),
  )
  const byRun = Map.groupBy(found, ({ runId }) => runId)
  const [first, second, third] = offers.map(({ run }) => byRun.get(run as never)?.map(({ n }) => n) ?? [])
  const share = Math.floor(MOST / 3)
  const inOrder = Array.from({ length: share }, (_, i) => MANY - i)
  assert.deepEqual([first, second, third], [inOrder, inOrder, [3, 2, 1]])
  assert.ok(read <= found.length + 2 * offers.length, `${read} rows read for ${found.length}`)
})

test('a run alone gets as many results as one frame may have', async () => {
  const other = await anAgent(c)
  await c.db`update placements set runner_id = ${other.id} where run_id = ${offers[0]!.run}`
  const found = await journal.undelivered(c.db, other.id, NOTHING)
  assert.equal(found.length, MOST)
  await c.db`update placements set runner_id = ${agent.id} where run_id = ${offers[0]!.run}`
})

test('page after page each run gets all of its results, in their order and once', async () => {
  const numbers = new Map<string, number[]>()
  let pages = 0
  for (let cursors: journal.Cursors | undefined = NOTHING.cursors; cursors !== undefined; pages++) {
    const page = await wakesFor(c.db, agent.id, { cursors })
    for (const { run, completions } of page.runs)
      numbers.set(run, [...(numbers.get(run) ?? []), ...completions.map(({ n }) => n)])
    cursors = page.cursors
  }
  const all = Array.from({ length: MANY }, (_, i) => MANY - i)
  assert.deepEqual(
    offers.map(({ run }) => numbers.get(run)),
    [all, all, [3, 2, 1]],
  )
  assert.ok(pages <= 5, `${pages} pages`)
})

test('bytes end a page, and not characters', async () => {
  const other = await anAgent(c)
  const { run } = offers[2]!
  await c.db`update placements set runner_id = ${other.id} where run_id = ${run}`
  await c.db`update journal set result = ${JSON.stringify('ж'.repeat(100_000))} where run_id = ${run}`
  const { runs, cursors } = await wakesFor(c.db, other.id, NOTHING)
  assert.deepEqual([runs[0]!.completions.length, cursors?.size], [2, 1])
  const rest = await wakesFor(c.db, other.id, { cursors: cursors! })
  assert.deepEqual([rest.runs[0]!.completions.length, rest.cursors], [1, undefined])
  assert.deepEqual((await wakesFor(c.db, other.id, { ...NOTHING, refusals: true })).runs, [])
  await c.db`update journal set state = 'failed', result = '{}' where run_id = ${run} and n = 1`
  const refused = await wakesFor(c.db, other.id, { ...NOTHING, refusals: true })
  assert.deepEqual(
    refused.runs.map(({ completions }) => completions.map(({ n }) => n)),
    [[1]],
  )
  await c.db`update journal set state = 'done', result = 'null' where run_id = ${run}`
  await c.db`update placements set runner_id = ${agent.id} where run_id = ${run}`
})

test('a run that leaves many large results keeps the first one of another in no later page', async () => {
  const other = await anAgent(c)
  const [first, , third] = offers.map(({ run }) => run)
  await c.db`update placements set runner_id = ${other.id} where run_id = any(${[first!, third!]})`
  await c.db`update journal set result = ${JSON.stringify('x'.repeat(200_000))} where run_id = ${first!} and n > 2900`
  await c.db`
    update journal set completion = nextval('journal_completions') where run_id = ${third!}`
  const { runs } = await wakesFor(c.db, other.id, NOTHING)
  assert.deepEqual(
    runs.map(({ run, completions }) => [run, completions.length]),
    [
      [first, 2],
      [third, 1],
    ],
  )
  await c.db`update journal set result = 'null' where run_id = ${first!}`
  await c.db`update placements set runner_id = ${agent.id} where run_id = any(${[first!, third!]})`
})

// A dozen sockets that said hello again and again held all connections of the coordinator.
test('agents that connect again and again look one at a time, and the last one is numbers', async () => {
  const holds = offers.map(placementOf)
  const link = await c.db.begin(async (tx) => {
    await tx`lock table journal in access exclusive mode`
    const links = []
    for (let n = 1; n <= 5; n++) {
      const next = await agent.dial()
      const letIn = moment('agent.connected')
      next.send({ t: 'hello', protocol: PROTOCOL_NAME, version: 'test', slots: 4, holds })
      await letIn
      links.push(next)
    }
    await untilBlocked(c.db)
    // Sent after all of them.
    await c.call(ops.runners.get, { runner: agent.id })
    assert.equal(await countBlocked(c.db), 1)
    return links.at(-1)!
  })
  const { runs } = await link.next('wake')
  assert.deepEqual(runs.map(({ run }) => run).toSorted(), offers.map(({ run }) => run).toSorted())
  await link.next('welcome')
})
