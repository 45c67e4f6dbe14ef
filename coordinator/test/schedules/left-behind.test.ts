// Of what waits behind others another coordinator may do some, or all.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { Schedule } from '@windlass/shared/model/schedule.ts'
import { settleBehind } from '../../schedules/fire.ts'
import { findAll } from '../../schedules/store.ts'
import { lockDecided } from '../../schedules/store-settle.ts'
import type { TestCoordinator } from '../_kit/coordinator.ts'
import { moveClock } from '../_kit/database-clock.ts'
import { aMovableCoordinator, aSchedule, firedBy, nowOf, passTo } from '../_kit/schedules.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator

before(async () => {
  c = await aMovableCoordinator()
})
after(() => c.stop())

const aTicking = async () => aSchedule(c, { workflow: (await aWorkflow(c)).slug, rate: '1h' })
async function settle({ id }: Schedule): Promise<boolean> {
  return settleBehind(c.deps, await findAll(c.deps.db, [id]))
}

// A coordinator rested for 100 ms at each org that another one had done, and kept one of three turns meanwhile.
test('nobody is waited for where nothing is left', async () => {
  const schedule = await aTicking()
  await passTo(c, schedule.nextAt! + 1000)
  assert.equal((await firedBy(c, schedule)).length, 1)
  assert.equal(await settle(schedule), true)
})

test('nobody is waited for who has done it while it was decided here', async (t) => {
  const schedule = await aTicking()
  const judge = c.deps.judge.judge.bind(c.deps.judge)
  // Somebody else has moved it on.
  t.mock.method(c.deps.judge, 'judge', async (...ask: Parameters<typeof judge>) => {
    await c.deps.db`
      update schedules set revision = revision + 1, due_at = now() + interval '1 year' where id = ${schedule.id}`
    return judge(...ask)
  })
  await c.deps.db`update schedules set due_at = now() where id = ${schedule.id}`
  assert.equal(await settle(schedule), true)
  assert.deepEqual(await firedBy(c, schedule), [])
})

test('who is still changing all of them is waited for', async () => {
  const schedule = await aTicking()
  const [row] = await c.deps.db<{ revision: number }[]>`select revision from schedules where id = ${schedule.id}`
  await c.deps.db.begin(async (tx) => {
    assert.equal((await lockDecided(tx, [{ id: schedule.id, revision: row!.revision }])).size, 1)
    await moveClock(c.db, schedule.nextAt! + 1000 - (await nowOf(c)))
    assert.equal(await settle(schedule), false)
  })
})
