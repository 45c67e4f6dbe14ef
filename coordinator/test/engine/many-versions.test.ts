import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { VersionId } from '@windlass/shared/ids.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { createTermsReader } from '../../workflows/terms.ts'
import { anAgent, end, start, type TestAgent } from '../_kit/agent.ts'
import { aCoordinatorOfItsOwn, aRun, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { countedDb } from '../_kit/counted-db.ts'
import { until } from '../_kit/until.ts'
import { aWorkflow, copiesOf, spoilSchemas, type WorkflowAsk } from '../_kit/workflow.ts'

// A hundred versions of a megabyte took all connections and seconds of the event loop, for a claim or a cancel.

const RUNS = 60

let c: TestCoordinator
let agent: TestAgent
before(async () => {
  c = await aCoordinatorOfItsOwn()
  agent = await anAgent(c)
})
after(() => c.stop())

/** Runs of as many versions, none of which can be read whole. */
async function runsOfMany(descriptor: NonNullable<WorkflowAsk['descriptor']> = {}) {
  const workflow = await aWorkflow(c, { descriptor })
  const runs: Run[] = []
  for (let n = 0; n < RUNS; n++) runs.push(await aRun(c, { workflow: workflow.slug }))
  const ids = runs.map(({ id }) => id)
  const versions = await copiesOf(c, workflow, { count: RUNS })
  await spoilSchemas(c, versions)
  await c.db`
    update runs r
    set version_id = n.version_id
    from unnest(${ids}::text[], ${versions}::text[]) as n (id, version_id)
    where r.id = n.id`
  return { slug: workflow.slug, ids, versions }
}

/** As a coordinator that has just started, which has read no terms. */
function forgetTerms() {
  const counted = countedDb(c.db)
  Object.assign(c.deps.versionTerms, createTermsReader(counted.db))
  return counted
}

const statusesOf = async (ids: readonly string[]) =>
  new Set((await c.db<{ status: string }[]>`select status from runs where id = any(${[...ids]})`).map((r) => r.status))

const ended = (ids: readonly string[]) =>
  until('the ends of the runs', async () => {
    const statuses = await statusesOf(ids)
    return [...statuses].every((one) => one === 'cancelled' || one === 'failed') && [...statuses]
  })

const numberOf = async (id: VersionId) =>
  (await c.db<[{ version: number }]>`select version from workflow_versions where id = ${id}`)[0].version

test('a claim of runs of many versions reads their terms together, and no schemas', async () => {
  const { ids, versions } = await runsOfMany({ timeout: '3m', slots: 1, cancelGrace: '4s', process: 'reuse' })
  const counted = forgetTerms()
  const offers = await agent.poll(RUNS)
  assert.deepEqual(offers.map(({ run }) => run).sort(), [...ids].sort())
  assert.ok(counted.looks() <= 2, `${counted.looks()} looks`)
  const first = offers.find(({ run }) => run === ids[0])!
  assert.deepEqual(
    [first.timeoutMs, first.graceMs, first.process, first.workflow.version],
    [180_000, 4000, 'reuse', await numberOf(versions[0]!)],
  )
  for (const id of ids) await c.call(ops.runs.cancel, { run: id })
})

test('runs of many versions that wait are cancelled and timed out without a look at their schemas', async () => {
  const cancelled = await runsOfMany()
  const timed = await runsOfMany({ timeout: { queue: '1h' } })
  const counted = forgetTerms()
  await c.call(ops.runs.bulkCancel, { org: c.org, filter: { workflow: cancelled.slug } })
  assert.deepEqual(await ended(cancelled.ids), ['cancelled'])
  c.deps.floors.timers.lower(Date.now() - 120_000)
  await c.db`update timers set due_at = now() where run_id = any(${timed.ids}) and kind = 'queue-timeout'`
  c.deps.timers.expect(0)
  assert.deepEqual(await ended(timed.ids), ['failed'])
  assert.equal(counted.mostAtOnce(), 1)
})

test('runs of many versions that execute are stopped, end and are tried again by their terms', async () => {
  const { ids } = await runsOfMany({ cancelGrace: '4s', retries: { error: { max: 1, delay: '1d' } } })
  const link = await agent.connect([], { slots: RUNS })
  const offers = await agent.poll(RUNS)
  assert.equal(offers.length, RUNS)
  const [stopped, threw] = [offers[0]!, offers[1]!]
  await link.accept(stopped, threw)
  await link.report(stopped, 1, start())
  await link.report(threw, 1, start(), end({ how: 'threw', error: { name: 'Error', message: 'it broke' } }))
  assert.deepEqual(await runOf(c, threw.run).then(({ status, attempt }) => [status, attempt]), ['queued', 2])
  forgetTerms()
  await c.call(ops.runs.cancel, { run: stopped.run })
  const order = await link.next('cancel')
  assert.deepEqual(
    order.runs.map(({ run, graceMs }) => [run, graceMs]),
    [[stopped.run, 4000]],
  )
  assert.ok(ids.includes(stopped.run))
})
