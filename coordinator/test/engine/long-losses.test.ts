// Runs with long journals that are lost: nobody waits for their ends.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { RunId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { anAgent, anInstance, start, type TestAgent } from '../_kit/agent.ts'
import { ageLeases, SWEEPING } from '../_kit/ageing.ts'
import { aCoordinatorOfItsOwn, aRun, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { until, untilPolled } from '../_kit/until.ts'
import { accepted } from '../_kit/waiting.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn(SWEEPING)
  await aWorkflow(c, { slug: 'any' })
})
after(() => c.stop())

const MANY = 25_000

/** A run in execution, whose journal has so many entries by its row, on an agent that is gone then. */
async function left(entries: number): Promise<{ run: RunId; agent: TestAgent; host: string }> {
  const [agent, instance] = [await anAgent(c), anInstance()]
  const link = await agent.connect([], { instance })
  await aRun(c, { workflow: 'any' })
  const offer = await accepted({ c, agent, link })
  await link.report(offer, 1, start())
  await c.db`update runs set entries = ${entries} where id = ${offer.run}`
  link.close()
  return { run: offer.run, agent, host: instance.host }
}

const attemptOf = async (run: string) => (await runOf(c, run)).attempt
const isLost = (run: string) => until('it is lost', async () => (await attemptOf(run)) === 2)

async function lossesOf(run: string): Promise<string[]> {
  const rows = await c.db<{ what: string }[]>`select what from run_losses where run_id = ${run}`
  return rows.map(({ what }) => what)
}

/** The agent, started once more on its host. */
async function nextStart(agent: TestAgent, host: string) {
  const [{ before }] = await c.db<[{ before: string }]>`
    select instance as before from runners where id = ${agent.id}`
  return { before, again: anInstance({ previous: [before], host }) }
}

async function reconciledBy({ id }: TestAgent): Promise<string> {
  const [{ by }] = await c.db<[{ by: string }]>`select reconciled_instance as by from runners where id = ${id}`
  return by
}

const isNoted = (agent: TestAgent, instance: string) =>
  untilPolled('it is noted', async () => (await reconciledBy(agent)) === instance)

test('an agent that comes back without a run that has a long journal is welcomed before that is ended', async () => {
  const { run, agent, host } = await left(MANY)
  const { again, before } = await nextStart(agent, host)
  await c.db.begin(async (tx) => {
    await tx`select from runs where id = ${run} for update`
    await agent.connect([], { instance: again })
    // Until then a hello that follows has to say the same of it.
    await agent.connect([], { instance: again })
    assert.equal(await reconciledBy(agent), before)
  })
  await isLost(run)
  assert.deepEqual(await lossesOf(run), ['daemon'])
  await isNoted(agent, again.id)
  agent.close()
  await c.call(ops.runs.cancel, { run })
})

const cut = new Set<number>()

/** The session that waits for the row of a run, to lose it, is ended. */
const cutOff = () =>
  untilPolled('its end is cut off', async () => {
    const ended = await c.db<{ pid: number }[]>`
      select pid, pg_terminate_backend(pid) from pg_stat_activity
      where datname = current_database() and wait_event_type = 'Lock' and query ilike '%for update%'`
    // One that was ended before may be seen once more.
    const news = ended.filter(({ pid }) => !cut.has(pid))
    for (const { pid } of news) cut.add(pid)
    return news.length > 0
  })

test('what could not be lost is tried again, and a start counts as noted only then', async () => {
  const { run, agent, host } = await left(MANY)
  const { again, before } = await nextStart(agent, host)
  await c.db.begin(async (tx) => {
    await tx`select from runs where id = ${run} for update`
    await agent.connect([], { instance: again })
    await cutOff()
    await cutOff()
    assert.equal(await reconciledBy(agent), before)
  })
  await isLost(run)
  assert.deepEqual(await lossesOf(run), ['daemon'])
  await isNoted(agent, again.id)
  agent.close()
  await c.call(ops.runs.cancel, { run })
})

test('what a later hello has added is not replaced by the try of an earlier one', async () => {
  const { run, agent, host } = await left(MANY)
  const { again, before } = await nextStart(agent, host)
  await c.db.begin(async (tx) => {
    await tx`select from runs where id = ${run} for update`
    await agent.connect([], { instance: again })
    await untilPolled('the first is under way', () => c.deps.longEnds.holds(run))
    await agent.connect([], { instance: again })
    await cutOff()
    // The one of the later hello has its turn, and nothing was noted before.
    await cutOff()
    assert.equal(await reconciledBy(agent), before)
  })
  await isLost(run)
  assert.deepEqual(await lossesOf(run), ['daemon'])
  await isNoted(agent, again.id)
  agent.close()
  await c.call(ops.runs.cancel, { run })
})

test('a start is noted also when a lost run cannot be ended, which is lost with its lease then', async () => {
  const { run, agent, host } = await left(MANY)
  const { again } = await nextStart(agent, host)
  await c.db.begin(async (tx) => {
    await tx`select from runs where id = ${run} for update`
    await agent.connect([], { instance: again })
    for (let tries = 0; tries < 3; tries++) await cutOff()
    await isNoted(agent, again.id)
  })
  await ageLeases(c, run)
  await isLost(run)
  agent.close()
  await c.call(ops.runs.cancel, { run })
})

test('lost runs do not wait for the end of one with a long journal', async () => {
  const [long, short] = [await left(MANY), await left(1)]
  await c.db.begin(async (tx) => {
    await tx`select from runs where id = ${long.run} for update`
    await ageLeases(c, long.run)
    await untilPolled('it is to be ended', () => c.deps.longEnds.holds(long.run))
    await ageLeases(c, short.run)
    await isLost(short.run)
    assert.equal(await attemptOf(long.run), 1)
  })
  await isLost(long.run)
})
