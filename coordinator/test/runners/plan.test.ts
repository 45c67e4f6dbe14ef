import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { anAgent, takeNext, type TestAgent } from '../_kit/agent.ts'
import { entriesBy } from '../_kit/audit.ts'
import { aCoordinatorOfItsOwn, aRun, type TestCoordinator } from '../_kit/coordinator.ts'
import { untilNoted } from '../_kit/noted.ts'
import { aParkedRun, question } from '../_kit/waiting.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
const agents: TestAgent[] = []

before(async () => {
  c = await aCoordinatorOfItsOwn()
  await aWorkflow(c, { slug: 'any', descriptor: { timeout: '10m', cancelGrace: '20s' } })
})
after(async () => {
  for (const agent of agents) agent.close()
  await c.stop()
})

async function aRunner(name: string, labels: string[] = []) {
  const agent = await anAgent(c, { name, labels })
  agents.push(agent)
  return { c, agent, link: await agent.connect() }
}

const planOf = async ({ id }: TestAgent) => (await c.call(ops.runners.plan, { runner: id })).plan

test('a plan tells what becomes of everything that the runner has, and changes nothing', async () => {
  const crew = await aRunner('first')
  const parked = await aParkedRun(crew, { workflow: 'any' }, question())
  await aRun(c, { workflow: 'any' })
  const executing = await takeNext(crew.agent, crew.link)
  await aRun(c, { workflow: 'any' })
  const [offered] = await crew.agent.poll(1)
  await aRun(c, { workflow: 'any' })
  let plan = await planOf(crew.agent)
  assert.deepEqual(await entriesBy(c, async () => void (plan = await planOf(crew.agent))), [])
  assert.deepEqual(
    plan.live.map(({ run, workflow, status, outcome }) => [run, workflow, status, outcome]),
    [
      [parked.run, 'any', 'awaiting_input', 'moves'],
      [executing.run, 'any', 'running', 'finishes'],
      [offered!.run, 'any', 'pending', 'returns-to-queue'],
    ],
  )
  const [moves, finishes, returns] = plan.live
  assert.deepEqual([moves?.latestEndAt, returns?.latestEndAt], [null, null])
  assert.equal(finishes!.latestEndAt! - finishes!.since!, 600_000 + 20_000)
  const [{ now }] = await c.db<[{ now: Date }]>`
    update placements
    set accepted_at = now() - interval '1 hour'
    where run_id = ${executing.run}
    returning now() as now`
  const held = (await planOf(crew.agent)).live.find(({ run }) => run === executing.run)
  assert.ok(held!.latestEndAt! >= now.getTime() + 20_000)
  assert.deepEqual([plan.epoch, plan.othersTakeWork, plan.queuedRuns], [0, 0, 1])
  assert.deepEqual(plan.warnings, [
    'No other runner of the pool takes work: what moves, goes back or is queued waits until one does.',
  ])
})

test('others that would take over are counted, and those who lack its labels are named as a trouble', async () => {
  const gpu = await aRunner('gpu', ['gpu'])
  const others = [(await aRunner('x')).agent, (await aRunner('y')).agent]
  for (const agent of others) await agent.poll(1, 0)
  await untilNoted(c, ...others)
  await c.db`update runners set last_poll_at = case when name in ('x', 'y') then now() end`
  await aRun(c, { workflow: 'any' })
  const plan = await planOf(gpu.agent)
  assert.equal(plan.othersTakeWork, 2)
  assert.match(plan.warnings.join(), /No other runner that takes work carries all labels/)
})

test('a drain under way says what it still waits for, and what may outlast its deadline', async () => {
  await c.call(ops.pools.create, { org: c.org, name: 'own' })
  await aWorkflow(c, { slug: 'own', descriptor: { pool: 'own' } })
  const agent = await anAgent(c, { pool: (await c.call(ops.pools.list, { org: c.org })).runnerPools.at(-1)!.id })
  agents.push(agent)
  const link = await agent.connect()
  await aRun(c, { workflow: 'own' })
  await takeNext(agent, link)
  await c.call(ops.runners.drain, { runner: agent.id, deadlineMs: 60_000 })
  const plan = await planOf(agent)
  assert.deepEqual([plan.epoch, plan.live.length], [1, 1])
  assert.deepEqual(plan.warnings, ['What executes may take longer than until the deadline of the drain.'])
  await untilNoted(c, agent)
  await c.db`update runners set last_heartbeat_at = null, last_poll_at = null where id = ${agent.id}`
  assert.match((await planOf(agent)).warnings.join(), /not heard of/)
})
