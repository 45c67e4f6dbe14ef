import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { aCoordinator, aRun, refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { anEnvironment } from '../_kit/environments.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let workflow: string

before(async () => {
  c = await aCoordinator()
  workflow = (await aWorkflow(c)).slug
  await anEnvironment(c, 'named')
})
after(() => c.stop())

async function environmentId(name: string): Promise<string> {
  const { environments } = await c.call(ops.environments.list, { org: c.org, limit: 100 })
  return environments.find((one) => one.name === name)!.id
}

test('an environment is taken by its id and by its name, in path, query and body', async () => {
  const id = await environmentId('named')
  for (const environment of [id, 'named']) {
    const args = { org: c.org, environment }
    const { variable } = await c.call(ops.variables.set, { ...args, name: 'WHERE', value: environment })
    assert.equal(variable.environment, 'named')
    const { variables } = await c.call(ops.variables.list, args)
    assert.deepEqual(
      variables.map(({ name, value }) => [name, value]),
      [['WHERE', environment]],
    )
    assert.deepEqual((await c.call(ops.secrets.list, args)).secrets, [])
    const run = await aRun(c, { workflow, environment })
    assert.equal(run.environment, 'named')
    const { runs } = await c.call(ops.runs.list, args)
    assert.ok(runs.some((one) => one.id === run.id))
    await c.call(ops.runs.cancel, { run: run.id })
    await c.call(ops.variables.delete, { ...args, name: 'WHERE' })
  }
  assert.deepEqual((await c.call(ops.runs.list, { org: c.org, environment: newId('env') })).runs, [])
  await assert.rejects(aRun(c, { workflow, environment: newId('env') }), refusal('VALIDATION_FAILED', 'environment'))
})

test('an environment that is deleted is taken by neither at once', async () => {
  await anEnvironment(c, 'going')
  const id = await environmentId('going')
  for (const environment of [id, 'going']) await c.deps.environments.find(c.orgId, environment)
  await c.call(ops.environments.delete, { org: c.org, environment: id })
  for (const environment of [id, 'going'])
    await assert.rejects(aRun(c, { workflow, environment }), refusal('VALIDATION_FAILED', 'environment'))
})

test('a pool is taken by its id and by its name where the path names no org', async () => {
  const { runnerPool } = await c.call(ops.pools.create, { org: c.org, name: 'by-name' })
  for (const pool of [runnerPool.id, 'by-name']) {
    assert.equal((await c.call(ops.pools.get, { pool })).runnerPool.id, runnerPool.id)
    const settings = { parkedMs: pool === 'by-name' ? 1000 : 2000 }
    const changed = await c.call(ops.pools.update, { pool, settings })
    assert.equal(changed.runnerPool.settings.parkedMs, settings.parkedMs)
    assert.match((await c.call(ops.pools.createToken, { pool })).registrationToken.token, /^wlr_/)
    assert.equal((await c.call(ops.pools.demand, { org: c.org, pool })).demand.pool.id, runnerPool.id)
    assert.deepEqual((await c.call(ops.runners.list, { org: c.org, pool })).runners, [])
  }
  await c.call(ops.pools.delete, { pool: 'by-name' })
  await assert.rejects(c.call(ops.pools.get, { pool: 'by-name' }), refusal('NOT_FOUND'))
})

test('a reference that is neither says what would do', async () => {
  for (const [args, says] of [
    [{ workflow: 'No Such' }, /`workflow` must be the slug of a workflow, or its id, such as wf_/],
    [{ environment: 'No Such' }, /`environment` must be the name of an environment, or its id, such as env_/],
  ] as const)
    await assert.rejects(c.call(ops.runs.list, { org: c.org, ...args }), says)
  const bad = c.call(ops.runners.list, { org: c.org, pool: 'No Such' })
  await assert.rejects(bad, /`pool` must be the name of a runner pool, or its id, such as pool_/)
})
