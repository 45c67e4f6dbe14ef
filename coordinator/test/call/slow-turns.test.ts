// Some handlers take their turns themselves: under a key, with a debounce, and for each look at the events of a run.
import assert from 'node:assert/strict'
import { after, before, test, type TestContext } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { pause } from '@windlass/shared/time.ts'
import { announce } from '@windlass/shared/test/_kit/until.ts'
import { revokeAnyKey } from '../../accounts/api-keys.ts'
import { noCredential } from '../../stay.ts'
import { aCoordinatorOfItsOwn, aRun, type TestCoordinator } from '../_kit/coordinator.ts'
import { mintApiKey } from '../_kit/credentials.ts'
import { SLOW_MS } from '../_kit/slow-judge.ts'
import { until } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const SEATS = 3
const operator = { kind: 'operator', id: 'ada@host', name: 'ada@host', via: 'admin', requestId: null } as const

let c: TestCoordinator
let run: string

before(async () => {
  c = await aCoordinatorOfItsOwn()
  await aWorkflow(c, { slug: 'plain' })
  await aWorkflow(c, { slug: 'debounced', descriptor: { debounce: { wait: '1h', maxWait: '2h' } } })
  run = (await aRun(c, { workflow: 'plain' })).id
})
after(() => c.stop())

type By = { apiKey: string }

const ACTS: Record<string, (by: By) => Promise<unknown>> = {
  keyed: (by) => c.call(ops.runs.trigger, { org: c.org, workflow: 'plain', idempotencyKey: 'once' }, by),
  debounced: (by) => c.call(ops.runs.trigger, { org: c.org, workflow: 'debounced' }, by),
  events: (by) => c.call(ops.runs.events, { run }, by),
  // All that waits for its turn before the handler is called.
  input: (by) => c.call(ops.runs.input, { run }, by),
}

const outcomeOf = (act: Promise<unknown>) =>
  act.then(
    () => 'done',
    (error: { code: string }) => error.code,
  )

/** Asks for something while others have their turns, and does `act` when all of it waits. */
async function whileOthersHave(
  t: TestContext,
  acts: (() => Promise<unknown>)[],
  act: () => Promise<unknown>,
): Promise<string[]> {
  const turns = c.deps.turns.orgCalls
  const held = Promise.withResolvers<void>()
  const seated = Array.from({ length: SEATS }, () => turns.run(c.orgId, noCredential, () => held.promise))
  const take = turns.run.bind(turns)
  let waiting = 0
  t.mock.method(turns, 'run', (...asked: Parameters<typeof take>) => {
    waiting++
    announce()
    return take(...asked)
  })
  const outcomes = acts.map((one) => outcomeOf(one()))
  await until('all to wait for their turns', () => waiting === acts.length)
  await act()
  await pause(SLOW_MS)
  held.resolve()
  await Promise.all(seated)
  return Promise.all(outcomes)
}

test('who loses the credential while others have their turns is refused, and nothing is done', async (t) => {
  const { id, key } = await mintApiKey(c.db, { orgId: c.orgId, name: 'leaver', role: 'owner' })
  const acts = Object.values(ACTS).map((act) => () => act({ apiKey: key }))
  const outcomes = await whileOthersHave(t, acts, () => revokeAnyKey(c.db, operator, id))
  assert.deepEqual(
    Object.keys(ACTS).map((name, i) => [name, outcomes[i]]),
    Object.keys(ACTS).map((name) => [name, 'UNAUTHENTICATED']),
  )
  assert.equal((await c.db`select from runs where trigger_actor = ${id}`).length, 0)
})

test('no call is debounced of a workflow that was disabled while others had their turns', async (t) => {
  const { id } = await aWorkflow(c, { slug: 'off', descriptor: { debounce: { wait: '1h', maxWait: '2h' } } })
  const trigger = () => c.call(ops.runs.trigger, { org: c.org, workflow: 'off' })
  const disable = async () => {
    await c.db`update workflows set disabled_at = now(), disabled_by = 'test' where id = ${id}`
    c.deps.targets.forget(c.orgId)
  }
  assert.deepEqual(await whileOthersHave(t, [trigger], disable), ['WORKFLOW_DISABLED'])
  assert.equal((await c.db`select from runs where workflow_id = ${id}`).length, 0)
})
