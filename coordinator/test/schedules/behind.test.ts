// Ticks of limited workflows are settled behind those of others, and each org has its turn in it.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Schedule } from '@windlass/shared/model/schedule.ts'
import { passedOver } from '../../schedules/behind.ts'
import { upcoming } from '../../schedules/store-settle.ts'
import { anOrg, asOwner, type TestCoordinator } from '../_kit/coordinator.ts'
import { moveClock } from '../_kit/database-clock.ts'
import { holdLimit } from '../_kit/held-locks.ts'
import { aMovableCoordinator, aSchedule, firedBy, nowOf, settled } from '../_kit/schedules.ts'
import { untilPolled } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const MINUTE = 60_000

let c: TestCoordinator

before(async () => {
  c = await aMovableCoordinator()
})
after(() => c.stop())

/** Schedules of a new workflow, which tick at the same time. */
async function someSchedules(
  { org, rate, anchorAt, limit }: { org: TestCoordinator; rate: string; anchorAt: number; limit?: number },
  count = 1,
): Promise<{ workflowId: string; schedules: Schedule[] }> {
  const { id, slug } = await aWorkflow(org, limit === undefined ? {} : { descriptor: { concurrency: limit } })
  const schedules: Schedule[] = []
  for (let n = 0; n < count; n++) schedules.push(await aSchedule(org, { workflow: slug, rate, anchorAt }))
  return { workflowId: id, schedules }
}

const timesFired = async (org: TestCoordinator, schedule: Schedule) => (await firedBy(org, schedule)).length

// With 60,000 runs in the limits of one org the ticks of another came up to 28 s late.
test('ticks that come due while an org waits for its own locks do not wait with it', async () => {
  const [theirs, limitedToo] = [asOwner(c, await anOrg(c)), asOwner(c, await anOrg(c))]
  const at = Math.ceil((await nowOf(c)) / MINUTE) * MINUTE
  const slow = await someSchedules({ org: c, rate: '1h', anchorAt: at, limit: 1 })
  const own = await someSchedules({ org: c, rate: '1m', anchorAt: at })
  const free = await someSchedules({ org: theirs, rate: '1m', anchorAt: at })
  const limited = await someSchedules({ org: limitedToo, rate: '1m', anchorAt: at, limit: 100 })
  const [ours] = slow.schedules
  const held = await holdLimit(c, slow.workflowId)
  const others = [
    [c, own.schedules[0]!] as const,
    [theirs, free.schedules[0]!] as const,
    [limitedToo, limited.schedules[0]!] as const,
  ]
  const goOn = async (byMs: number) => {
    await moveClock(c.db, byMs)
    c.deps.scheduleTimers.expect(0)
  }
  const isStillWaiting = async () => {
    const due = await c.deps.db`select from schedules where id = ${ours!.id} and due_at <= now()`
    return due.length === 1 && (await held.isWaitedFor())
  }
  await goOn(at + 60 * MINUTE - (await nowOf(c)))
  let round = 0
  for (let isApart = false; !isApart; round++) {
    assert.ok(round < 4, 'others were done only when it had given up')
    await held.waitedFor()
    const before = await Promise.all(others.map(([org, schedule]) => timesFired(org, schedule)))
    // The next minute. What was put off is due again as well.
    await goOn(MINUTE)
    for (const [i, [org, schedule]] of others.entries())
      await untilPolled('the tick of the others', async () => (await timesFired(org, schedule)) > before[i]!)
    isApart = await isStillWaiting()
  }
  assert.equal(await timesFired(c, ours!), 0)
  await held.release()
  await untilPolled('the own tick', async () => (await timesFired(c, ours!)) === 1)
  await c.deps.schedulesBehind.idle()
})

test('limited schedules all fire, each once, also over two coordinators', async () => {
  const other = await c.another()
  const at = Math.ceil((await nowOf(c)) / MINUTE) * MINUTE
  const all = [await someSchedules({ org: c, rate: '1h', anchorAt: at, limit: 1000 }, 60)]
  all.push(await someSchedules({ org: c, rate: '1h', anchorAt: at, limit: 1000 }, 60))
  const ids = all.flatMap(({ schedules }) => schedules.map(({ id }) => id))
  await moveClock(c.db, at + 60 * MINUTE - (await nowOf(c)))
  other.deps.scheduleTimers.expect(0)
  await settled(c)
  const runs = await c.db<{ id: string }[]>`select trigger_id as id from runs where trigger_id = any(${ids})`
  assert.deepEqual(runs.map(({ id }) => id).toSorted(), ids.toSorted())
  for (const { deps } of [c, other]) {
    await deps.schedulesBehind.idle()
    assert.deepEqual(passedOver(deps), { orgs: [], workflows: [] })
  }
  await other.stop()
})

test('what is passed over hides nothing that is due later', async () => {
  const at = Math.ceil((await nowOf(c)) / MINUTE) * MINUTE
  const [first, second] = [
    await someSchedules({ org: c, rate: '1h', anchorAt: at }, 2),
    await someSchedules({ org: c, rate: '1h', anchorAt: at }),
  ]
  const ids = [...first.schedules, ...second.schedules].map(({ id }) => id)
  const back = new Error('nothing of it stays')
  const looking = c.db.begin(async (tx) => {
    await tx`update schedules set due_at = now() + interval '1 day' where due_at is not null`
    for (const [n, id] of ids.entries())
      await tx`update schedules set due_at = now() - interval '1 hour' + ${n} * interval '1 second' where id = ${id}`
    const found = async (orgs: string[], workflows: string[]) =>
      (await upcoming(tx as never, 2, { orgs, workflows } as never)).flatMap(({ id, turn }) =>
        turn === null ? [] : id,
      )
    assert.deepEqual(await found([], []), ids.slice(0, 2))
    assert.deepEqual(await found([], [first.workflowId]), ids.slice(2))
    assert.deepEqual(await found([c.orgId], []), [])
    throw back
  })
  await assert.rejects(looking, back)
})
