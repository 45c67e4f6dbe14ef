import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { RunStatus } from '@windlass/shared/model/run.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { list, listStretch, type RunFilter } from '../../runs/store-list.ts'
import { moveMark } from '../../engine/sweep/mark.ts'
import { anOrg, aCoordinatorOfItsOwn, aRun, type TestCoordinator } from '../_kit/coordinator.ts'
import { indexBlocksRead, rowsRead } from '../_kit/rows-read.ts'
import { ONE_IN, SEEDED_HOOK, seedRuns } from '../_kit/seeded-runs.ts'
import { aWorkflow, type TestWorkflow } from '../_kit/workflow.ts'

const RUNS = 30_000
const HOUR_MS = 3_600_000

let c: TestCoordinator
let rare: TestWorkflow

before(async () => {
  c = await aCoordinatorOfItsOwn()
  await aWorkflow(c, { slug: 'common' })
  rare = await aWorkflow(c, { slug: 'rare' })
  await seedRuns(c.db, { org: c.org, count: RUNS, workflows: { common: 'common', rare: 'rare' } })
})
after(() => c.stop())

const rowsOf = (filter: Partial<RunFilter>) =>
  rowsRead(c.db, 'runs', (db) => list(db, { orgId: c.orgId, limit: 51, ...filter }))

test('a page reads about as many runs as it shows, whatever is asked for and however rare it is', async () => {
  const PAGE = { found: 51, read: 51 }
  assert.deepEqual(await rowsOf({}), PAGE)
  assert.deepEqual(await rowsOf({ tag: 'nightly' }), PAGE)
  assert.deepEqual(await rowsOf({ tag: 'rare' }), { found: RUNS / ONE_IN.rareTag, read: RUNS / ONE_IN.rareTag })
  assert.deepEqual(await rowsOf({ tag: 'none' }), { found: 0, read: 0 })
  assert.deepEqual(await rowsOf({ workflowId: rare.id }), {
    found: RUNS / ONE_IN.workflow,
    read: RUNS / ONE_IN.workflow,
  })
  assert.deepEqual(await rowsOf({ environment: 'none' }), { found: 0, read: 0 })
  const waiting = RUNS / ONE_IN.queued
  assert.deepEqual(await rowsOf({ status: ['queued', 'sleeping'] }), { found: waiting, read: waiting })
  const cancelled = RUNS / ONE_IN.cancelled
  assert.deepEqual(await rowsOf({ status: ['cancelled'] }), { found: cancelled, read: cancelled })
  assert.deepEqual(await rowsOf({ status: ['failed'] }), PAGE)
  const either = await rowsOf({ status: ['failed', 'cancelled', 'queued', 'running'] })
  assert.deepEqual([either.found, either.read <= 51 + waiting], [51, true])
  assert.deepEqual(await rowsOf({ status: ['running'] }), { found: 0, read: waiting })
})

test('the runs of a webhook are read by its org alone', async () => {
  const [own, foreign] = [await rowsOf({ trigger: SEEDED_HOOK }), await anOrg(c)]
  assert.deepEqual([own.found, own.read <= 52], [51, true], `${own.read} rows`)
  const others = await rowsOf({ trigger: SEEDED_HOOK, orgId: foreign.id })
  assert.deepEqual([others.found, others.read <= 1], [0, true], `${others.read} rows`)
  const failed = await rowsOf({ trigger: SEEDED_HOOK, orgId: foreign.id, status: ['failed'] })
  assert.deepEqual([failed.found, failed.read <= 2], [0, true], `${failed.read} rows`)
})

test('what is rare among very many runs with a tag is found by its status', async () => {
  assert.deepEqual(await rowsOf({ tag: 'nightly', status: ['queued', 'running'] }), { found: 0, read: 1 })
  const { read } = await rowsOf({ tag: 'nightly', status: ['cancelled'] })
  assert.equal(read, RUNS / ONE_IN.cancelled)
  // And the other way round.
  const rareTag = RUNS / ONE_IN.rareTag
  assert.deepEqual(await rowsOf({ tag: 'rare', status: ['failed'] }), { found: 0, read: rareTag })
})

test('a search in stretches looks at so many runs each time, and finds the same', async () => {
  const most = 2000
  const search = async (filter: Partial<RunFilter>) => {
    const ids: string[] = []
    for (let before: string | undefined, rounds = 1; ; rounds++) {
      const ask = { orgId: c.orgId, limit: 1000, ...filter, before }
      const { read } = await rowsRead(c.db, 'runs', async (db) => {
        const found = await listStretch(db, ask, most)
        ids.push(...found.ids)
        before = found.isAll ? undefined : found.lookedTo
        return []
      })
      assert.ok(read <= 2 * most, `${read} rows of one stretch`)
      if (before === undefined) return { ids, rounds }
    }
  }
  const none = await search({ tag: 'nightly', environment: 'none' })
  assert.deepEqual(none.ids, [])
  assert.ok(none.rounds >= RUNS / ONE_IN.tag / most, `${none.rounds} rounds`)
  for (const filter of [
    { tag: 'nightly' },
    { status: ['failed', 'cancelled'], root: true },
    { status: ['queued'], tag: 'nightly' },
    { workflowId: rare.id },
    { environment: 'none' },
    {},
  ] as Partial<RunFilter>[]) {
    const all = await list(c.db, { orgId: c.orgId, limit: RUNS, ...filter })
    assert.deepEqual(
      (await search(filter)).ids,
      all.map(({ id }) => id),
    )
  }
})

test('a list of unfinished runs does not walk through the index of those that have ended', async () => {
  const waiting = RUNS / ONE_IN.queued
  const blocks = await indexBlocksRead(c.db, 'runs', (db) =>
    list(db, { orgId: c.orgId, limit: 51, status: ['running'] }),
  )
  assert.ok(blocks <= 20 + 4 * waiting, `${blocks} blocks`)
})

test('the last page reads no more than the first', async () => {
  const [row] = await c.db<[{ id: string }]>`select id from runs order by id offset 50 limit 1`
  assert.deepEqual(await rowsOf({ before: row.id }), { found: 50, read: 50 })
})

test('runs of some hours are found without those that came before and after, but for an hour of them', async () => {
  const since = Date.now() - 720 * HOUR_MS
  const hours = await rowsOf({ createdAfter: since, createdBefore: since + 2 * HOUR_MS })
  const inAnHour = RUNS / (90 * 24)
  assert.ok(Math.abs(hours.found - 2 * inAnHour) <= 2)
  assert.ok(hours.read <= 4 * inAnHour + 2, `${hours.read} were read`)
})

test('an org with few runs is not made to read those of a large one', async () => {
  const small = await anOrg(c)
  await aWorkflow(c, { slug: 'small', orgId: small.id })
  for (let i = 0; i < 3; i++)
    await c.call(ops.runs.trigger, { org: small.slug, workflow: 'small' }, { apiKey: small.apiKey })
  const few = { found: 3, read: 3 }
  assert.deepEqual(await rowsOf({ orgId: small.id }), few)
  assert.deepEqual(await rowsOf({ orgId: small.id, createdAfter: Date.now() - HOUR_MS }), few)
  assert.deepEqual(await rowsOf({ orgId: small.id, tag: 'nightly' }), { found: 0, read: 0 })
  // Of the large org nothing is shown, though what has not finished is looked up for all.
  assert.equal((await rowsOf({ orgId: small.id, status: ['queued'] })).found, 3)
})

test('a run is in the lists of one status only, from its creation to its end', async () => {
  const { id } = await aRun(c, { workflow: 'common', tags: ['followed'] })
  const listed = async (...status: RunStatus[]) =>
    (await c.call(ops.runs.list, { org: c.org, status, createdAfter: Date.now() - HOUR_MS })).runs.filter(
      (run) => run.id === id,
    ).length
  assert.deepEqual([await listed('queued'), await listed('cancelled'), await listed('queued', 'cancelled')], [1, 0, 1])
  // As the sweeper leaves it: behind the mark, and remembered.
  await moveMark(c.db, id)
  assert.deepEqual([await listed('queued'), await listed('cancelled'), await listed('queued', 'cancelled')], [1, 0, 1])
  await c.call(ops.runs.cancel, { run: id })
  assert.deepEqual([await listed('queued'), await listed('cancelled'), await listed('queued', 'cancelled')], [0, 1, 1])
  assert.deepEqual(
    [await listed('failed'), await listed('completed', 'cancelled'), await listed('completed')],
    [0, 1, 0],
  )
})
