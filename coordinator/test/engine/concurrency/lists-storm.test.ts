import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { chosenSeed, randomOf } from '@windlass/shared/test/_kit/seed.ts'
import type { Entry } from '@windlass/shared/wire/agent.ts'
import { sweepRunsOnce } from '../../../engine/sweep/sweep.ts'
import { anAgent, end, type Link, returned, start, takeNext, type TestAgent } from '../../_kit/agent.ts'
import { aCoordinatorOfItsOwn, aRun, runOf, type TestCoordinator } from '../../_kit/coordinator.ts'
import { goesOn, parked, sleeps } from '../../_kit/journal.ts'
import { aVersion, aWorkflow } from '../../_kit/workflow.ts'

let c: TestCoordinator
let other: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn()
  other = await c.another()
})
after(() => c.stop())

const finish = (link: Link, offer: Parameters<Link['report']>[0]) => link.report(offer, 2, end(returned(1)))

test('a run that waits for its customer lets those of other customers pass', async () => {
  const concurrency = [{ limit: 2 }, { limit: 1, key: 'input.customer' }]
  const { slug } = await aWorkflow(c, { descriptor: { concurrency } })
  const agent = await anAgent(c)
  const link = await agent.connect()
  const [first, second, third, fourth] = await inTurn(['ada', 'ada', 'bob', 'cyd'], (customer) =>
    aRun(c, { workflow: slug, input: { customer } }),
  )
  const offer = await takeNext(agent, link)
  assert.equal(offer.run, first!.id)
  const passing = await takeNext(agent, link)
  assert.equal(passing.run, third!.id)
  assert.deepEqual(await agent.poll(1, 0), [])
  await finish(link, offer)
  // It has come before the fourth, which waits for both limits as well.
  const next = await takeNext(agent, link)
  assert.equal(next.run, second!.id)
  await finish(link, passing)
  const last = await takeNext(agent, link)
  assert.equal(last.run, fourth!.id)
  await finish(link, next)
  await finish(link, last)
})

test('`why` names the limit that holds a run back, who is under way there and who keeps a place', async () => {
  const concurrency = [{ limit: 1 }, { limit: 1, key: 'input.customer' }]
  const { slug } = await aWorkflow(c, { descriptor: { concurrency } })
  const [first, second, third] = await inTurn(['ada', 'bob', 'bob'], (customer) =>
    aRun(c, { workflow: slug, input: { customer } }),
  )
  const causeOf = async (run: string) => (await c.call(ops.runs.why, { run })).why.causes[0]!
  const waits = await causeOf(second!.id)
  assert.equal(waits.code, 'CONCURRENCY_LIMIT')
  assert.match(waits.message, /limits `concurrency` to 1, and 1 run of its group is under way\. It is the next\./)
  assert.deepEqual(waits.runIds, [first!.id])
  const behind = await causeOf(third!.id)
  assert.match(behind.message, /to 1 for each `input\.customer`, and 0 runs of its group are under way, 1 more has/)
  assert.deepEqual(behind.runIds, [second!.id])
  for (const { id } of [third!, second!, first!]) await c.call(ops.runs.cancel, { run: id })
})

async function inTurn<A, B>(items: readonly A[], act: (item: A) => Promise<B>): Promise<B[]> {
  const done: B[] = []
  for (const item of items) done.push(await act(item))
  return done
}

const LIMITS = { all: 6, customer: 1, region: 2 }

/** Takes and ends runs, some of which sleep in between, until nothing is left. */
async function work(agent: TestAgent, link: Link, seed: number, isOver: () => Promise<boolean>) {
  const random = randomOf(seed)
  while (!(await isOver())) {
    const offers = await agent.poll(4, 300)
    if (offers.length === 0) continue
    const accepted = (await link.accept(...offers)).runs.map(([run]) => run)
    for (const offer of offers.filter(({ run }) => accepted.includes(run))) {
      const rest: Entry[] = random.next() < 0.2 ? [sleeps(1, 5), parked('sleep'), goesOn()] : []
      await link.report(offer, 1, start(), ...rest, end(returned(1)))
    }
  }
}

test('a storm over three limits at once, with cancels and two versions, ends with nothing left', async (t) => {
  const seed = chosenSeed()
  t.diagnostic(`WINDLASS_TEST_SEED=${seed}`)
  const random = randomOf(seed)
  const limits = (region: number) => [
    { limit: LIMITS.all },
    { limit: LIMITS.customer, key: 'input.customer' },
    { limit: region, key: 'input.region' },
  ]
  const workflow = await aWorkflow(c, { descriptor: { concurrency: limits(LIMITS.region) } })
  const ask = () => ({
    workflow: workflow.slug,
    input: { customer: random.between(1, 8), region: random.between(1, 4) },
    priority: random.pick([0, 0, 0, 3]),
  })
  const first = Array.from({ length: 60 }, (_, i) => aRun(i % 2 ? c : other, ask()))
  const runs = await Promise.all(first)
  await aVersion(c, workflow, { descriptor: { concurrency: limits(1).toReversed() } })
  other.deps.targets.forget(c.orgId)
  runs.push(...(await Promise.all(Array.from({ length: 60 }, (_, i) => aRun(i % 2 ? c : other, ask())))))
  const isOver = async () => (await c.db`select 1 from runs where finished_at is null limit 1`).length === 0
  const agents = await Promise.all([c, other].map((at) => anAgent(at)))
  const links = await Promise.all(agents.map((agent) => agent.connect()))
  const most = { '': LIMITS.all, customer: LIMITS.customer, region: LIMITS.region } as Record<string, number>
  const watch = (async () => {
    while (!(await isOver())) {
      // Of those that nobody has resumed: a run that goes on counts even beyond a limit.
      const rows = await c.db<{ key: string; n: number }[]>`
        select group_key as key, count(*)::int as n
        from concurrency_slots s
        join runs r on r.id = s.run_id
        where r.started_at is null and group_key like ${`${workflow.id}%`}
        group by group_key`
      for (const { key, n } of rows) assert.ok(n <= most[key.split('/')[1] ?? '']!, `${n} count in ${key}`)
    }
  })()
  const cancels = (async () => {
    for (let i = 0; i < runs.length; i += 7)
      await (i % 2 ? c : other)
        .call(ops.runs.cancel, { run: runs[i]!.id })
        .catch((error: Error & { code?: string }) => {
          if (error.code !== 'RUN_ALREADY_FINISHED') throw error
        })
  })()
  await Promise.all(agents.map((agent, i) => work(agent, links[i]!, seed + i, isOver)))
  await Promise.all([watch, cancels])
  for (const { id } of runs) assert.match((await runOf(c, id)).status, /^(completed|cancelled)$/)
  const [left] = await c.db<[{ slots: number; waiters: number; deadlocks: number }]>`
    select (select count(*)::int from concurrency_slots) as slots,
           (select count(*)::int from concurrency_waiters) as waiters,
           (select deadlocks::int from pg_stat_database where datname = current_database()) as deadlocks`
  assert.deepEqual({ ...left }, { slots: 0, waiters: 0, deadlocks: 0 })
  assert.equal(await sweepRunsOnce(c.deps), 0)
})
