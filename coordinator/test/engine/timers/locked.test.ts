// Somebody holds the row of a run for long, as a large commit does, or a person at the database.
import assert from 'node:assert/strict'
import { after, before, type TestContext, test } from 'node:test'
import { onMoment } from '@windlass/shared/probe.ts'
import { isLockTimeout, type Tx } from '../../../db/client.ts'
import { fireDue } from '../../../engine/commit/fire.ts'
import { anAgent, type Link, type TestAgent } from '../../_kit/agent.ts'
import { aCoordinatorOfItsOwn, anOrg, aRun, asOwner, runOf, type TestCoordinator } from '../../_kit/coordinator.ts'
import { holdRun } from '../../_kit/held-locks.ts'
import { untilPolled } from '../../_kit/until.ts'
import { aParkedRun, call, sleepFor } from '../../_kit/waiting.ts'
import { aWorkflow } from '../../_kit/workflow.ts'

interface Tenant {
  c: TestCoordinator
  agent: TestAgent
  link: Link
}

let [ours, theirs]: Tenant[] = []

async function aTenant(c: TestCoordinator): Promise<Tenant> {
  await aWorkflow(c, { slug: 'any' })
  const agent = await anAgent(c)
  return { c, agent, link: await agent.connect() }
}

before(async () => {
  ours = await aTenant(await aCoordinatorOfItsOwn({ LOG_LEVEL: 'error' }))
  theirs = await aTenant(asOwner(ours.c, await anOrg(ours.c)))
})
after(async () => {
  for (const tenant of [ours, theirs]) tenant?.agent.close()
  await ours!.c.stop()
})

/** What happens from now on: runs are moved, or a transaction has waited for a lock in vain. */
function listen(t: TestContext, { deps }: TestCoordinator): ('moved' | 'waited in vain')[] {
  const heard: ('moved' | 'waited in vain')[] = []
  const begin = deps.db.begin.bind(deps.db) as (act: (tx: Tx) => unknown) => Promise<unknown>
  t.mock.method(deps.db, 'begin', async (act: (tx: Tx) => unknown) => {
    try {
      return await begin(act)
    } catch (error) {
      if (isLockTimeout(error)) heard.push('waited in vain')
      throw error
    }
  })
  t.after(onMoment(({ name }) => name === 'runs.moved' && heard.push('moved')))
  return heard
}

function lookNow({ deps }: TestCoordinator): void {
  deps.floors.timers.lower(Date.now() - 120_000)
  deps.timers.expect(0)
}

const openOf = async ({ db }: TestCoordinator, run: string) =>
  (await db`select from journal where run_id = ${run} and state = 'open'`).length

// All that was due of any org waited half a second for it, time and again while it lasted.
test('sleeps do not wait for a run of another org that somebody has locked', async (t) => {
  const { c } = ours!
  const locked = await aParkedRun(ours!, { workflow: 'any' }, sleepFor(), sleepFor())
  const own = await aParkedRun(ours!, { workflow: 'any' }, sleepFor())
  const other = await aParkedRun(theirs!, { workflow: 'any' }, sleepFor())
  const held = await holdRun(c, locked.run)
  const heard = listen(t, c)
  await c.db`
    update timers
    set due_at = now() - n * interval '1 second'
    where run_id in (${locked.run}, ${own.run}, ${other.run}) and kind = 'sleep'`
  lookNow(c)
  for (const { run } of [own, other])
    await untilPolled('the sleep of another run is over', async () => (await openOf(c, run)) === 0)
  assert.equal(heard[0], 'moved')
  // What is left of it waits somewhere: a look goes by.
  await fireDue(c.deps)
  assert.equal(await openOf(c, locked.run), 2)
  await held.release()
  await untilPolled('its own are over', async () => (await openOf(c, locked.run)) === 0)
  const ended = await c.db<{ n: number }[]>`
    select n from journal where run_id = ${locked.run} and state = 'done' order by completion`
  assert.deepEqual(
    ended.map(({ n }) => n),
    [2, 1],
  )
})

test('runs whose time is over do not wait for the parent of one of another org', async (t) => {
  const { c } = ours!
  const parent = await aParkedRun(ours!, { workflow: 'any' }, call('any'))
  const [child] = await c.db<{ id: string }[]>`select id from runs where parent_run_id = ${parent.run}`
  const other = await aRun(theirs!.c, { workflow: 'any' })
  const held = await holdRun(c, parent.run)
  const heard = listen(t, c)
  await c.db`
    insert into timers (run_id, org_id, kind, n, due_at)
    select id, org_id, 'wall-timeout', 0, now() - interval '1 minute' from runs where id in (${child!.id}, ${other.id})
    on conflict (run_id, kind, n) do update set due_at = excluded.due_at`
  lookNow(c)
  await untilPolled('the other one has ended', async () => (await runOf(theirs!.c, other.id)).finishedAt !== null)
  assert.equal(heard[0], 'moved')
  assert.equal((await runOf(c, child!.id)).finishedAt, null)
  await held.release()
  await untilPolled('it has ended too', async () => (await runOf(c, child!.id)).finishedAt !== null)
  assert.equal(await openOf(c, parent.run), 0)
})
