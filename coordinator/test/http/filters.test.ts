import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { anOrg, aCoordinator, aRun, type TestCoordinator } from '../_kit/coordinator.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinator()
  const { slug } = await aWorkflow(c)
  await aRun(c, { workflow: slug })
})
after(() => c.stop())

/** A list of the org as an address asks for it. */
async function listed(path: string): Promise<{ status: number; body: Record<string, unknown> & { error?: Refusal } }> {
  const response = await fetch(`${c.url}/v1/orgs/${c.org}/${path}`, {
    headers: { authorization: `Bearer ${c.apiKey}` },
  })
  return { status: response.status, body: (await response.json()) as Record<string, unknown> }
}

interface Refusal {
  code: string
  message: string
  detail?: { path?: string }
}

test('a filter that names nothing finds nothing', async () => {
  for (const [list, path] of [
    ['runs', 'runs?workflow=nope'],
    ['runs', `runs?workflow=${newId('wf')}`],
    ['runs', 'runs?environment=nope'],
    ['runs', 'runs?tag=nope'],
    ['variables', 'variables?environment=nope'],
    ['secrets', 'secrets?environment=nope'],
    ['inputs', `inputs?run=${newId('run')}`],
    ['runners', 'runners?pool=nope'],
    ['runners', `runners?pool=${newId('pool')}`],
    ['auditEntries', `audit?actor=${newId('key')}`],
  ] as const) {
    const { status, body } = await listed(path)
    assert.deepEqual([status, body], [200, { [list]: [], nextCursor: null }], path)
  }
})

test('a filter that names a thing of another org finds nothing', async () => {
  const strangers = await anOrg(c)
  const { environment } = await c.call(
    ops.environments.create,
    { org: strangers.slug, name: 'theirs' },
    { apiKey: strangers.apiKey },
  )
  const variable = { org: strangers.slug, name: 'THEIRS', value: 'x', environment: 'theirs' }
  await c.call(ops.variables.set, variable, { apiKey: strangers.apiKey })
  for (const ref of ['theirs', environment.id])
    for (const list of ['variables', 'secrets', 'runs'])
      assert.deepEqual((await listed(`${list}?environment=${ref}`)).body, { [list]: [], nextCursor: null })
})

test('a filter without a value is refused, and named', async () => {
  for (const path of [
    ...['status', 'workflow', 'environment', 'trigger', 'tag', 'createdAfter', 'cursor', 'limit'].map(
      (f) => `runs?${f}=`,
    ),
    ...['status', 'run'].map((field) => `inputs?${field}=`),
    ...['pool', 'status', 'intake'].map((field) => `runners?${field}=`),
    ...['actor', 'action', 'target'].map((field) => `audit?${field}=`),
    'variables?environment=',
    'secrets?environment=',
  ]) {
    const { status, body } = await listed(path)
    assert.deepEqual([status, body.error?.code], [400, 'VALIDATION_FAILED'], path)
    assert.equal(body.error?.detail?.path, path.slice(path.indexOf('?') + 1, -1), body.error?.message)
  }
})
