import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { PoolSettings } from '@windlass/shared/model/pool.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { needsText } from '../../matching/needs.ts'
import { anAgent, type TestAgent } from '../_kit/agent.ts'
import { anOrg, aCoordinator, aRun, refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { rowsRead } from '../_kit/rows-read.ts'
import { untilPolled } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'
import { workers } from '../../engine/store/queue-heads.ts'
import { createDemandReader, figuresOf } from '../../runners/demand.ts'
import * as store from '../../runners/store-demand.ts'
import { turnsBeside } from '../_kit/turns.ts'

let c: TestCoordinator
let poolId: string

before(async () => {
  c = await aCoordinator()
  poolId = (await c.call(ops.pools.create, { org: c.org, name: 'crowded', settings: { labels: ['pooled'] } }))
    .runnerPool.id
  await aWorkflow(c, { slug: 'any', descriptor: { pool: 'crowded' } })
})
after(() => c.stop())

const demandOf = async (pool: string) => (await c.call(ops.pools.demand, { org: c.org, pool })).demand

test('an empty pool asks for nothing', async () => {
  await c.call(ops.pools.create, { org: c.org, name: 'empty' })
  const { pool, ...rest } = await demandOf('empty')
  assert.equal(pool.name, 'empty')
  assert.deepEqual(rest, {
    queuedRuns: 0,
    queuedSlots: 0,
    oldestQueuedAt: null,
    executingRuns: 0,
    usedSlots: 0,
    slots: 0,
    freeSlots: 0,
    runners: { online: 0, takingWork: 0, draining: 0, offline: 0 },
    missingSlots: 0,
    byLabels: [],
  })
})

test('of the labels of runners only those are read that are asked for', async () => {
  const name = 'wordy'
  const settings = { labels: ['pooled'] }
  const { id } = (await c.call(ops.pools.create, { org: c.org, name, settings })).runnerPool
  const agent = await anAgent(c, { pool: id, labels: ['a', 'b', 'c'] })
  await c.db`update runners set last_poll_at = now() where id = ${agent.id}`
  const labelsOf = async (asked: string[]) => {
    const [[row], [worker]] = await Promise.all([store.capacity(c.db, id, asked), workers(c.db, id, asked)])
    return [row!.labels, worker!.labels]
  }
  assert.deepEqual(await labelsOf([]), [[], []])
  assert.deepEqual(await labelsOf(['c', 'pooled', 'a', 'else']), [
    ['a', 'c'],
    ['a', 'c', 'pooled'],
  ])
  agent.close()
})

/** A machine as the random scenario has it, and what it has: whether it was accepted, whether it is parked, how many slots. */
interface Machine {
  agent: TestAgent
  labels: string[]
  slots: number
  state: 'open' | 'cordoned' | 'draining'
  online: boolean
  has: { accepted: boolean; parked: boolean; slots: number }[]
}
interface Waiting {
  labels: string[]
  slots: number
}

const LABELS = ['a', 'b', 'pooled']
let drawn = 7
/** The same scenario each time. */
const pick = <T>(from: readonly T[]): T => from[(drawn = (drawn * 48_271) % 2_147_483_647) % from.length]!

async function aMachine(): Promise<Machine> {
  const labels = LABELS.slice(0, 2).filter(() => pick([true, false]))
  const machine = {
    labels,
    slots: pick([1, 2, 4]),
    state: pick(['open', 'open', 'open', 'cordoned', 'draining'] as const),
    online: pick([true, true, true, false]),
    has: Array.from({ length: pick([0, 0, 1, 2]) }, () => {
      const accepted = pick([true, false])
      return { accepted, parked: accepted && pick([true, false]), slots: pick([1, 2]) }
    }),
  }
  const agent = await anAgent(c, { pool: poolId, labels, slots: machine.slots })
  await c.db`update runner_intake set state = ${machine.state} where runner_id = ${agent.id}`
  if (machine.online) await c.db`update runners set last_poll_at = now() where id = ${agent.id}`
  return { ...machine, agent }
}

async function hold({ agent, has }: Machine): Promise<void> {
  for (const { accepted, parked, slots } of has) {
    const { id } = await aRun(c, { workflow: 'any' })
    await c.db`delete from run_queue where run_id = ${id}`
    await c.db`
      update runs set status = 'running', place = ${parked ? 'parked' : 'hot'}, epoch = 1, runner_id = ${agent.id} where id = ${id}`
    await c.db`
      insert into placements (run_id, runner_id, epoch, accepted_at, lease_expires_at, slots)
      values (${id}, ${agent.id}, 1, ${accepted ? c.db`now()` : null}, now() + interval '1 h', ${slots})`
  }
}

async function wait({ labels, slots }: Waiting): Promise<void> {
  const { id } = await aRun(c, { workflow: 'any' })
  await c.db`update run_queue set needs = ${needsText({ labels, slots })} where run_id = ${id}`
}

const sum = (values: number[]) => values.reduce((total, value) => total + value, 0)
const usedBy = ({ has }: Machine) => sum(has.filter((run) => !run.parked).map((run) => run.slots))
const isTaking = (one: Machine) => one.online && one.state === 'open'
const freeOf = (one: Machine) => Math.max(0, one.slots - usedBy(one))
const carries = (one: Machine, labels: string[]) => labels.every((label) => [...one.labels, 'pooled'].includes(label))

test('the figures of a crowded pool are those of a count by hand', async () => {
  const machines: Machine[] = []
  for (let i = 0; i < 12; i++) machines.push(await aMachine())
  for (const machine of machines) await hold(machine)
  const waiting = Array.from({ length: 25 }, () => {
    return { labels: LABELS.filter(() => pick([true, false, false])), slots: pick([1, 1, 2]) }
  })
  for (const run of waiting) await wait(run)
  const demand = await demandOf(poolId)
  const open = machines.filter(isTaking)
  assert.ok(open.length > 2 && open.length < 12, 'the scenario has some of each')
  assert.deepEqual([demand.queuedRuns, demand.queuedSlots], [25, sum(waiting.map((run) => run.slots))])
  assert.equal(
    demand.executingRuns,
    sum(machines.map(({ has }) => has.filter((run) => run.accepted && !run.parked).length)),
  )
  assert.equal(demand.usedSlots, sum(machines.map(usedBy)))
  assert.deepEqual([demand.slots, demand.freeSlots], [sum(open.map((one) => one.slots)), sum(open.map(freeOf))])
  assert.deepEqual(demand.runners, {
    online: machines.filter((one) => one.online).length,
    takingWork: open.length,
    draining: machines.filter((one) => one.state === 'draining').length,
    offline: machines.filter((one) => !one.online).length,
  })
  assert.ok(Math.abs(demand.oldestQueuedAt! - Date.now()) < 60_000)
  const sets = Map.groupBy(waiting, (run) => run.labels.toSorted().join())
  assert.equal(demand.byLabels.length, sets.size)
  for (const { labels, ...figures } of demand.byLabels) {
    const runs = sets.get(labels.join())!
    assert.deepEqual(figures, {
      queuedRuns: runs.length,
      queuedSlots: sum(runs.map((run) => run.slots)),
      freeSlots: sum(open.filter((one) => carries(one, labels)).map(freeOf)),
    })
  }
  assert.ok(demand.missingSlots >= demand.queuedSlots - demand.freeSlots)
  assert.ok(demand.missingSlots <= demand.queuedSlots)
  for (const { labels, queuedSlots, freeSlots } of demand.byLabels)
    assert.ok(demand.missingSlots >= queuedSlots - freeSlots, labels.join())
})

test('a runner that says something is in its way, is quarantined or does not poll takes no work; a full one does', async () => {
  const name = 'picky'
  const { runnerPool } = await c.call(ops.pools.create, { org: c.org, name })
  const { id } = await anAgent(c, { pool: runnerPool.id, slots: 1 })
  // A slow machine is not asked anew for each of these.
  const taking = (count: number, why = 'the runner says') =>
    untilPolled(`${count} to take work: ${why}`, async () => (await demandOf(name)).runners.takingWork === count)
  await c.db`update runners set last_poll_at = now(), last_heartbeat_at = now() where id = ${id}`
  await taking(1)
  await c.db`update runners set unready = '[{"check":"disk","message":"full"}]' where id = ${id}`
  await taking(0)
  await c.db`update runners set unready = '[]' where id = ${id}`
  for (const settings of [{ isolation: 'bubblewrap' as const }, { isolation: 'process' as const }]) {
    await c.call(ops.pools.update, { pool: runnerPool.id, settings })
    await taking(settings.isolation === 'process' ? 1 : 0, 'it cannot do what its pool asks for')
  }
  await c.call(ops.pools.update, { pool: runnerPool.id, settings: { limits: { cpus: 1 } } })
  await taking(1)
  await c.db`update runner_intake set quarantined_until = now() + interval '1 minute' where runner_id = ${id}`
  await taking(0)
  await c.db`update runner_intake set quarantined_until = now() where runner_id = ${id}`
  await c.db`update runners set last_poll_at = now() - interval '2 minutes' where id = ${id}`
  await taking(0)
  const run = await aRun(c, { workflow: 'any' })
  await c.db`
    insert into placements (run_id, runner_id, epoch, accepted_at, lease_expires_at) values (${run.id}, ${id}, 1, now(), now())`
  await taking(1, 'it has no room to ask for')
  await c.db`delete from placements where run_id = ${run.id}`
})

test('a run that needs more slots than any runner has in all is missing a runner', async () => {
  const name = 'narrow'
  const { runnerPool } = await c.call(ops.pools.create, { org: c.org, name })
  for (let i = 0; i < 3; i++) {
    const { id } = await anAgent(c, { pool: runnerPool.id, slots: 2 })
    await c.db`update runners set last_poll_at = now() where id = ${id}`
  }
  await aWorkflow(c, { slug: 'wide', descriptor: { pool: name, slots: 4 } })
  await aRun(c, { workflow: 'wide' })
  const { queuedSlots, freeSlots, missingSlots } = await demandOf(name)
  assert.deepEqual([queuedSlots, freeSlots, missingSlots], [4, 6, 4])
})

test('what waits in other pools is not looked at', async () => {
  await aWorkflow(c, { slug: 'many' })
  await Promise.all(Array.from({ length: 300 }, () => aRun(c, { workflow: 'many' })))
  await c.db`analyze run_queue`
  const { read } = await rowsRead(c.db, 'run_queue', (db) => store.queued(db, poolId as never))
  assert.ok(read < 60, `${read} rows`)
})

test('a strange pool is not there', async () => {
  const { apiKey, slug } = await anOrg(c)
  for (const pool of [poolId, 'crowded', 'nowhere'])
    await assert.rejects(c.call(ops.pools.demand, { org: slug, pool }, { apiKey }), refusal('NOT_FOUND'))
})

test('what many ask for at once is found once, and others have their turns meanwhile', async (t) => {
  const reader = createDemandReader(c.db)
  const { id, settings } = (await store.poolOf(c.db, c.orgId, poolId))!
  const [first, second] = [reader({ id, settings }), reader({ id, settings })]
  assert.equal(first, second)
  await first
  const queued = Array.from({ length: 20 }, (_, i) => ({ needs: `1|zone:${i}`, runs: 1, oldestAt: new Date() }))
  let missingSlots = 0
  const turns = await turnsBeside(t, async () => {
    ;({ missingSlots } = await figuresOf({ queued, capacity: [] }, PoolSettings.parse({})))
  })
  assert.equal(missingSlots, 20)
  assert.ok(turns >= 19, `${turns} turns`)
})
