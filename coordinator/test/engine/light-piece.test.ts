// Runs with long journals end by themselves: what they have to close holds up nobody else.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { RunId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { onMoment } from '@windlass/shared/probe.ts'
import { lightPiece, lightPieces, MOST_TO_CLOSE } from '../../engine/commit/light-piece.ts'
import * as placements from '../../engine/store/placements.ts'
import { fireDue } from '../../engine/commit/fire.ts'
import { anAgent } from '../_kit/agent.ts'
import { aCoordinatorOfItsOwn, anOrg, aRun, asOwner, type TestCoordinator } from '../_kit/coordinator.ts'
import { untilPolled } from '../_kit/until.ts'
import { accepted } from '../_kit/waiting.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn()
  await aWorkflow(c, { slug: 'any' })
})
after(() => c.stop())

/** A queued run whose journal has so many entries, by its row. */
async function aRunOf(entries: number, on = c): Promise<RunId> {
  const { id } = await aRun(on, { workflow: 'any' })
  await c.db`update runs set entries = ${entries} where id = ${id}`
  return id
}

const timeIsUp = (runs: RunId[]) => c.db`
  insert into timers (run_id, org_id, kind, n, due_at)
  select id, org_id, 'wall-timeout', 0, now() from runs where id = any(${runs})
  on conflict (run_id, kind, n) do update set due_at = excluded.due_at`

async function failedOf(runs: RunId[]): Promise<RunId[]> {
  const rows = await c.db<{ id: RunId }[]>`select id from runs where id = any(${runs}) and status = 'failed'`
  return rows.map(({ id }) => id)
}

test('pieces have as many entries as a transaction may close, the shortest first, and long journals last', async () => {
  const [long, half, other, short] = [
    await aRunOf(25_000),
    await aRunOf(MOST_TO_CLOSE / 2),
    await aRunOf(MOST_TO_CLOSE / 2),
    await aRunOf(1),
  ]
  const all = [long, half, other, short]
  assert.deepEqual(await lightPieces(c.deps.db, all), [[short, half], [other], [long]])
  assert.deepEqual(await lightPiece(c.deps.db, all), [long])
  assert.deepEqual(await lightPiece(c.deps.db, [half, other, short]), [half, other])
  for (const run of all) await c.call(ops.runs.cancel, { run })
})

test('a bulk cancel of runs with long journals takes them one by one', async () => {
  const runs = [await aRunOf(25_000), await aRunOf(25_000), await aRunOf(25_000)]
  let pieces = 0
  const stop = onMoment(({ name }) => void (name === 'bulk.piece' && pieces++))
  await c.call(ops.runs.bulkCancel, { org: c.org, filter: { all: true } })
  await untilPolled('all are cancelled', async () => {
    const left = await c.db`select from runs where id = any(${runs}) and status <> 'cancelled'`
    return left.length === 0
  })
  stop()
  assert.ok(pieces >= runs.length, `${pieces} pieces`)
})

test('runs with long journals whose time is up all end', async () => {
  const runs = [await aRunOf(25_000), await aRunOf(25_000), await aRunOf(1)]
  await timeIsUp(runs)
  c.deps.timers.expect(0)
  await untilPolled('all have failed', async () => (await failedOf(runs)).length === runs.length)
})

test('timers of others do not wait for the end of a run with some hundred entries', async () => {
  const [long, short] = [await aRunOf(501), await aRunOf(1)]
  await c.db.begin(async (tx) => {
    await tx`select from runs where id = ${long} for update`
    await timeIsUp([long])
    c.deps.timers.expect(0)
    await untilPolled('it waits', () => c.deps.longEnds.holds(long))
    await timeIsUp([short])
    await fireDue(c.deps)
    await c.deps.timersBehind.ends.idle()
    assert.deepEqual(await failedOf([long, short]), [short])
  })
  await untilPolled('the long one has failed', async () => (await failedOf([long])).length === 1)
})

test('of lost runs each org has its first in turn', async () => {
  const other = asOwner(c, await anOrg(c))
  await aWorkflow(other, { slug: 'any' })
  const held: string[] = []
  for (const [org, count] of [
    [c, 3],
    [other, 1],
  ] as const) {
    const agent = await anAgent(org)
    const crew = { c: org, agent, link: await agent.connect() }
    for (let n = 0; n < count; n++) {
      await aRun(org, { workflow: 'any' })
      held.push((await accepted(crew)).run)
    }
    agent.close()
  }
  // In one transaction that is undone: the coordinator itself looks as well.
  await c.db
    .begin(async (tx) => {
      await tx`update placements set lease_expires_at = now() - interval '1 second' where run_id = any(${held})`
      const found = await placements.overdue(tx as unknown as typeof c.db, 60_000, 3_600_000)
      assert.deepEqual(
        found.map(({ runId }) => held.indexOf(runId)),
        [0, 3, 1, 2],
      )
      throw new Error('undone')
    })
    .catch((error: Error) => assert.equal(error.message, 'undone', error.stack))
})
