import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { followMark, moveMark } from '../../engine/sweep/mark.ts'
import { anAgent, end, placementOf, returned, type TestAgent } from '../_kit/agent.ts'
import { entriesOf } from '../_kit/audit.ts'
import { aCoordinatorOfItsOwn, anOrg, aRun, refusal, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { anEnvironment } from '../_kit/environments.ts'
import { assertInStep } from '../_kit/in-step.ts'
import { untilPolled } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let agent: TestAgent

before(async () => {
  c = await aCoordinatorOfItsOwn()
  agent = await anAgent(c)
  await aWorkflow(c, { slug: 'any' })
})
after(async () => {
  agent.close()
  await c.stop()
})

const drop = (environment: string) => c.call(ops.environments.delete, { org: c.org, environment })
const names = async () =>
  (await c.call(ops.environments.list, { org: c.org, limit: 100 })).environments.map(({ name }) => name)

test('environments are listed page by page in the order of their names', async () => {
  const { apiKey, slug } = await anOrg(c)
  for (const name of ['qa', 'dev', 'prod', 'a-1'])
    await c.call(ops.environments.create, { org: slug, name }, { apiKey })
  const first = await c.call(ops.environments.list, { org: slug, limit: 3 }, { apiKey })
  assert.deepEqual(
    first.environments.map(({ name, org }) => [name, org]),
    [
      ['a-1', slug],
      ['dev', slug],
      ['prod', slug],
    ],
  )
  const cursor = first.nextCursor!
  const second = await c.call(ops.environments.list, { org: slug, limit: 3, cursor }, { apiKey })
  assert.deepEqual([second.environments.map(({ name }) => name), second.nextCursor], [['qa'], null])
  const bad = Buffer.from('NO NAME').toString('base64url')
  await assert.rejects(
    c.call(ops.environments.list, { org: slug, cursor: bad }, { apiKey }),
    refusal('VALIDATION_FAILED', 'cursor'),
  )
})

test('a name is taken once, and each change is in the audit log', async () => {
  const { environment } = await c.call(ops.environments.create, { org: c.org, name: 'twice' })
  assert.match(environment.id, /^env_/)
  await assert.rejects(anEnvironment(c, 'twice'), refusal('CONFLICT'))
  await c.call(ops.variables.set, { org: c.org, name: 'ONE', value: '1', environment: 'twice' })
  await drop(environment.id)
  const entries = await entriesOf(c, { target: environment.id })
  assert.deepEqual(
    entries.map(({ action, before, after, target }) => [action, before, after, target.name]),
    [
      ['environments.delete', { name: 'twice', variables: ['ONE'], secrets: [] }, null, 'twice'],
      ['environments.create', null, { name: 'twice' }, 'twice'],
    ],
  )
})

test('deleting an environment takes what is set in it along, and nothing else', async () => {
  await anEnvironment(c, 'gone')
  await anEnvironment(c, 'stays')
  for (const environment of ['gone', 'stays'])
    await c.call(ops.variables.set, { org: c.org, name: 'WHERE', value: environment, environment })
  await drop('gone')
  await assert.rejects(drop('gone'), refusal('NOT_FOUND'))
  await anEnvironment(c, 'gone')
  assert.deepEqual((await c.call(ops.variables.list, { org: c.org, environment: 'gone' })).variables, [])
  const { variables } = await c.call(ops.variables.list, { org: c.org, environment: 'stays' })
  assert.deepEqual(
    variables.map(({ name, value, environment }) => [name, value, environment]),
    [['WHERE', 'stays', 'stays']],
  )
})

test('an environment of another org looks absent', async () => {
  const { environment } = await c.call(ops.environments.create, { org: c.org, name: 'ours' })
  const { apiKey, slug } = await anOrg(c)
  for (const one of ['ours', environment.id])
    await assert.rejects(
      c.call(ops.environments.delete, { org: slug, environment: one }, { apiKey }),
      refusal('NOT_FOUND'),
    )
  const ours = { org: slug, environment: 'ours' }
  assert.deepEqual((await c.call(ops.variables.list, ours, { apiKey })).variables, [])
  await assert.rejects(c.call(ops.variables.set, { ...ours, name: 'A', value: '' }, { apiKey }), refusal('NOT_FOUND'))
  await assert.rejects(c.call(ops.environments.list, { org: c.org }, { apiKey }), refusal('NOT_FOUND'))
  assert.ok((await names()).includes('ours'))
})

test('an environment is kept while unfinished runs use it, old ones too', async () => {
  await anEnvironment(c, 'busy')
  const old = await aRun(c, { workflow: 'any', environment: 'busy' })
  await aRun(c, { workflow: 'any', environment: 'busy' })
  const isRefused = () =>
    assert.rejects(drop('busy'), (error: Error & { detail?: object }) => {
      assert.deepEqual(error.detail, { environment: 'busy', unfinishedRuns: 2 })
      return refusal('ENVIRONMENT_IN_USE')(error)
    })
  // Behind the mark unfinished runs stand in a table of their own.
  await moveMark(c.db, old.id)
  await isRefused()
  // As a coordinator of before wrote it.
  const ofBefore = { triggerId: null, environment: null, poolId: null }
  await c.db`update runs_remaining set ${c.db(ofBefore)} where run_id = ${old.id}`
  await isRefused()
  await followMark(c.db)
  await isRefused()
  const [row] = await c.db<object[]>`
    select trigger_id, environment, pool_id is not null as has_pool from runs_remaining where run_id = ${old.id}`
  assert.deepEqual({ ...row }, { triggerId: '', environment: 'busy', hasPool: true })
  const link = await agent.connect()
  const offers = await agent.poll(2)
  await link.accept(...offers)
  await link.report(offers[0]!, 1, end(returned(null)))
  await assert.rejects(drop('busy'), /^ApiError: 1 unfinished run uses the environment `busy`/)
  await link.report(offers[1]!, 1, end(returned(null)))
  await drop('busy')
})

test('an org has two hundred environments at most', async () => {
  const { apiKey, slug, id } = await anOrg(c)
  await c.db`
    insert into environments (id, org_id, name)
    select 'env_' || i || ${id}, ${id}, 'e' || i from generate_series(1, 199) i`
  await c.call(ops.environments.create, { org: slug, name: 'last' }, { apiKey })
  await assert.rejects(
    c.call(ops.environments.create, { org: slug, name: 'one-more' }, { apiKey }),
    refusal('VALIDATION_FAILED', 'name'),
  )
  // A change of the org's own level makes the sets of all of them anew.
  await c.call(ops.variables.set, { org: slug, name: 'A', value: 'x' }, { apiKey })
  const [row] = await c.db<{ sets: number; heads: number }[]>`
    select count(distinct set_id)::int as sets, count(*)::int as heads from variable_heads where org_id = ${id}`
  assert.deepEqual(row, { sets: 1, heads: 201 })
})

test('a trigger in an unknown environment is refused, with those that are known', async () => {
  const { apiKey, slug, id } = await anOrg(c)
  await aWorkflow(c, { slug: 'theirs', orgId: id })
  const trigger = (environment: string) =>
    c.call(ops.runs.trigger, { org: slug, workflow: 'theirs', environment }, { apiKey })
  await assert.rejects(trigger('nowhere'), /It has none yet\. Create it with `windlass env create nowhere`/)
  for (let i = 10; i < 22; i++) await c.call(ops.environments.create, { org: slug, name: `e${i}` }, { apiKey })
  await assert.rejects(trigger('nowhere'), (error: Error & { detail?: { known?: string[]; path?: string } }) => {
    assert.equal(error.detail?.known?.length, 10)
    return refusal('VALIDATION_FAILED', 'environment')(error)
  })
  // Looked up again at once: what was not there a moment ago may be there now.
  await c.call(ops.environments.create, { org: slug, name: 'nowhere' }, { apiKey })
  assert.equal((await trigger('nowhere')).run.environment, 'nowhere')
})

test('a coordinator lets go of an environment at once where it is deleted, and soon elsewhere', async () => {
  const other = await c.another()
  await anEnvironment(c, 'brief')
  assert.equal(await other.deps.environments.find(c.orgId, 'brief'), 'brief')
  assert.equal(await c.deps.environments.find(c.orgId, 'brief'), 'brief')
  await drop('brief')
  await assert.rejects(aRun(c, { workflow: 'any', environment: 'brief' }), refusal('VALIDATION_FAILED', 'environment'))
  const isGone = async () => (await other.deps.environments.find(c.orgId, 'brief')) === undefined
  await untilPolled('the other to let go of it', isGone)
})

test('a run whose environment goes away while it is queued ends and says so, and starts nowhere', async () => {
  const pool = (await c.call(ops.pools.create, { org: c.org, name: 'late' })).runnerPool.id
  const here = await anAgent(c, { pool })
  await aWorkflow(c, { slug: 'late', descriptor: { pool: 'late' } })
  await anEnvironment(c, 'going')
  const run = await aRun(c, { workflow: 'late', environment: 'going' })
  // As another coordinator does it that has not seen the run yet.
  await c.db`delete from variable_heads where environment = 'going'`
  await c.db`delete from environments where name = 'going'`
  const other = await aRun(c, { workflow: 'late' })
  const offers = await here.poll(2)
  assert.deepEqual(
    offers.map((offer) => offer.run),
    [other.id],
  )
  const ended = await runOf(c, run.id)
  assert.deepEqual([ended.status, ended.error?.code], ['failed', 'ENVIRONMENT_GONE'])
  assert.match(ended.error!.message, /Create `going` again and retry the run/)
  const link = await here.connect([placementOf(offers[0]!)])
  await link.report(offers[0]!, 1, end(returned(null)))
  here.close()
})

test('while environments come and go, each run that was taken either has its environment or ends with the reason', async () => {
  const pool = (await c.call(ops.pools.create, { org: c.org, name: 'storm' })).runnerPool.id
  const here = await anAgent(c, { pool })
  await aWorkflow(c, { slug: 'storm', descriptor: { pool: 'storm' } })
  const other = await c.another()
  const taken: string[] = []
  let deleted = 0
  for (let round = 0; round < 5; round++) {
    await anEnvironment(c, 'tide')
    await c.call(ops.variables.set, { org: c.org, name: 'TIDE', value: `${round}`, environment: 'tide' })
    const triggers = Array.from({ length: 10 }, (_, i) =>
      aRun(i % 2 === 0 ? c : other, { workflow: 'storm', environment: 'tide' }).then(
        (run) => taken.push(run.id),
        refusal('VALIDATION_FAILED', 'environment'),
      ),
    )
    const deletes = drop('tide').then(() => deleted++, refusal('ENVIRONMENT_IN_USE'))
    await Promise.all([...triggers, deletes])
    const link = await here.connect()
    for (;;) {
      const offers = await here.poll(20, 200)
      if (offers.length === 0) break
      for (const offer of offers) assert.deepEqual(offer.variables, { TIDE: `${round}` })
      await link.accept(...offers)
      await Promise.all(offers.map((offer) => link.report(offer, 1, end(returned(null)))))
    }
    link.close()
    if ((await names()).includes('tide')) await drop('tide')
  }
  const ends = await Promise.all(taken.map((id) => runOf(c, id)))
  for (const run of ends)
    assert.ok(run.status === 'completed' || run.error?.code === 'ENVIRONMENT_GONE', `${run.status} ${run.error?.code}`)
  here.close()
  assert.ok(taken.length > 0 || deleted > 0)
})

test('lists by status and tag find all of these runs', () => assertInStep(c.db, c.orgId))
