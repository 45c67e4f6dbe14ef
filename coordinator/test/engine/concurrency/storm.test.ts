import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { randomOf } from '@windlass/shared/test/_kit/seed.ts'
import type { Entry, Offer } from '@windlass/shared/wire/agent.ts'
import { anAgent, end, type Link, returned, start, type TestAgent } from '../../_kit/agent.ts'
import { aCoordinatorOfItsOwn, aRun, type TestCoordinator } from '../../_kit/coordinator.ts'
import { calls, evicted, goesOn, parked, sleeps } from '../../_kit/journal.ts'
import { underWay } from '../../_kit/under-way.ts'
import { aWorkflow } from '../../_kit/workflow.ts'

let c: TestCoordinator
let other: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn()
  other = await c.another()
})
after(() => c.stop())

const LIMITS: Record<string, number> = { ping: 2, pong: 3, free: 0 }
const SLUGS = Object.keys(LIMITS)

/** A number from 0 up to, not including, `below`; the same ones each time. */
function sequence(seed: number): (below: number) => number {
  const random = randomOf(seed)
  return (below) => random.between(0, below - 1)
}

/** One of the ways in which a program comes to its end. */
function fateOf(offer: Offer, pick: (below: number) => number): Entry[] {
  const depth = Number(offer.inputText)
  if (offer.replay) return [goesOn(), end(returned(1))]
  const ends = [end(returned(1))]
  switch (pick(6)) {
    case 0:
      return [start(), end({ how: 'killed', signal: 'SIGKILL' })]
    case 1:
      return [start(), sleeps(1, 5), parked('sleep'), goesOn(), ...ends]
    case 2:
      return [start(), sleeps(1, 5), parked('sleep'), evicted()]
    case 3:
      return depth > 0
        ? [start(), calls(1, SLUGS[pick(3)]!, depth - 1), parked('child'), evicted()]
        : [start(), ...ends]
    case 4:
      return depth > 0 ? [start(), calls(1, SLUGS[pick(3)]!, depth - 1), ...ends] : [start(), ...ends]
    default:
      return [start(), ...ends]
  }
}

/** Takes and ends runs until nothing is left. */
async function work(agent: TestAgent, link: Link, pick: (below: number) => number, isOver: () => Promise<boolean>) {
  while (!(await isOver())) {
    const offers = await agent.poll(4, 300)
    if (offers.length === 0) continue
    const accepted = (await link.accept(...offers)).runs.map(([run]) => run)
    for (const offer of offers.filter(({ run }) => accepted.includes(run)))
      await link.report(offer, 1, ...fateOf(offer, pick))
  }
}

test('limits hold and nothing stands still while runs call, wait, crash and are cancelled in two groups at once', async () => {
  for (const slug of SLUGS) {
    const concurrency = LIMITS[slug] ? { concurrency: LIMITS[slug] } : {}
    await aWorkflow(c, { slug, descriptor: { ...concurrency, retries: { crash: 100 } } })
  }
  const pick = sequence(7)
  const asks = Array.from({ length: 90 }, (_, i) => ({ workflow: SLUGS[i % 3]!, input: pick(4), priority: pick(3) }))
  const runs = await Promise.all(asks.map((ask, i) => aRun(i % 2 ? c : other, ask)))
  const isOver = async () => (await c.db`select 1 from runs where finished_at is null limit 1`).length === 0
  const agents = await Promise.all([c, other, c].map((at) => anAgent(at)))
  const links = await Promise.all(agents.map((agent) => agent.connect()))
  const watch = (async () => {
    while (!(await isOver())) {
      // One statement sees each transaction whole or not at all, so this is true at every moment: here a run calls
      // another, or goes on after it has waited, only in the report that parks or ends it.
      for (const { slug, n, uncounted } of await underWay(c.db)) {
        assert.ok(n <= LIMITS[slug]!, `${n} of ${slug} are under way`)
        assert.equal(uncounted, 0, `${uncounted} of ${slug} are under way without a slot`)
      }
    }
  })()
  const cancels = (async () => {
    for (let i = 0; i < runs.length; i += 7)
      await c.call(ops.runs.cancel, { run: runs[i]!.id }).catch((error: Error & { code?: string }) => {
        if (error.code !== 'RUN_ALREADY_FINISHED') throw error
      })
  })()
  await Promise.all(agents.map((agent, i) => work(agent, links[i]!, sequence(i + 1), isOver)))
  await Promise.all([watch, cancels])
  const [left] = await c.db<[{ slots: number; waiters: number; timers: number; deadlocks: number }]>`
    select (select count(*)::int from concurrency_slots) as slots,
           (select count(*)::int from concurrency_waiters) as waiters,
           (select count(*)::int from timers) as timers,
           (select deadlocks::int from pg_stat_database where datname = current_database()) as deadlocks`
  assert.deepEqual({ ...left }, { slots: 0, waiters: 0, timers: 0, deadlocks: 0 })
})
