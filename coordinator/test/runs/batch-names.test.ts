// Batches whose items each name another environment or version: what they look up is bounded.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { announce } from '@windlass/shared/test/_kit/until.ts'
import { countBlocked, untilBlocked } from '../_kit/blocked.ts'
import { aCoordinatorOfItsOwn, anOrg, type TestCoordinator } from '../_kit/coordinator.ts'
import { until } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn()
})
after(() => c.stop())

type Item = { environment?: string; version?: number; idempotencyKey?: string }

const batch = async (workflow: string, items: Item[]) =>
  (await c.call(ops.runs.batch, { org: c.org, workflow, items })).results

const codesOf = (results: Awaited<ReturnType<typeof batch>>) =>
  new Set(results.map((result) => ('run' in result ? 'run' : result.error.code)))

test('what is not there is looked for once for a batch', async (t) => {
  const { slug } = await aWorkflow(c)
  const find = t.mock.method(c.deps.environments, 'find')
  const resolve = t.mock.method(c.deps.targets, 'resolve')
  const names = Array.from({ length: 1000 }, (_, n) => ({ environment: `none-${n}` }))
  const results = await batch(slug, names)
  assert.deepEqual(codesOf(results), new Set(['VALIDATION_FAILED']))
  const [first] = results
  assert.match(first && 'error' in first ? first.error.message : '', /no environment `none-0` in this org/)
  const versions = Array.from({ length: 1000 }, (_, n) => ({ version: n + 2, idempotencyKey: `${n}` }))
  assert.deepEqual(codesOf(await batch(slug, versions.slice(0, 100))), new Set(['NOT_FOUND']))
  assert.deepEqual(
    codesOf(
      await batch(
        slug,
        versions.map(({ version }) => ({ version })),
      ),
    ),
    new Set(['NOT_FOUND']),
  )
  assert.equal(find.mock.callCount(), 0)
  assert.equal(resolve.mock.calls.filter(({ arguments: [, , version] }) => version !== undefined).length, 0)
})

test('what is there is found among it, by name and by id', async () => {
  const { slug } = await aWorkflow(c)
  const { environments } = await c.call(ops.environments.list, { org: c.org })
  const { environment } = await c.call(ops.environments.create, { org: c.org, name: `e${environments.length}` })
  const items = [{ environment: environment.name }, { environment: environment.id }, { version: 1 }, { version: 2 }]
  const results = await batch(slug, [...items, { environment: 'none' }])
  assert.deepEqual(
    results.map((result) => ('run' in result ? result.run.environment : result.error.code)),
    [environment.name, environment.name, null, 'NOT_FOUND', 'VALIDATION_FAILED'],
  )
})

test('batches of one org that look up names have one connection, and leave the others to everybody else', async (t) => {
  const { slug } = await aWorkflow(c)
  const neighbour = await anOrg(c)
  const turns = c.deps.turns.orgBatches
  const take = turns.run.bind(turns)
  let asking = 0
  t.mock.method(turns, 'run', (...asked: Parameters<typeof take>) => {
    asking++
    announce()
    return take(...asked)
  })
  let batches: ReturnType<typeof batch>[] = []
  await c.db.begin(async (tx) => {
    await tx`lock table environments in access exclusive mode`
    batches = Array.from({ length: 30 }, (_, n) => batch(slug, [{ environment: `none-${n}` }, { environment: 'x' }]))
    await until('all are under way', () => asking === 30)
    await untilBlocked(c.db, '%environments%')
    assert.ok((await c.call(ops.pools.list, { org: neighbour.slug }, { apiKey: neighbour.apiKey })).runnerPools)
    assert.equal(await countBlocked(c.db), 1)
  })
  for (const results of await Promise.all(batches)) assert.deepEqual(codesOf(results), new Set(['VALIDATION_FAILED']))
})
