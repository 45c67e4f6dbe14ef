// A placement that somebody holds keeps no pulse from coming, is lengthened later, and is not judged until then.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { openDatabase } from '../../db/client.ts'
import { recheck } from '../../engine/store/placements.ts'
import { pulseLimitMs } from '../../engine/store/pulse.ts'
import { anAgent, type Held } from '../_kit/agent.ts'
import { countBlocked } from '../_kit/blocked.ts'
import { aRun, type TestCoordinator } from '../_kit/coordinator.ts'
import { moveClock } from '../_kit/database-clock.ts'
import { holdPlacements, owedTo } from '../_kit/held-placements.ts'
import * as kit from '../_kit/pulses.ts'
import { untilPolled } from '../_kit/until.ts'

const { about, FLOOR_MS, LEASE_MS, MINUTE, OFFER_MS, SWEEP_MS } = kit

let c: TestCoordinator
let time: kit.Pulses

before(async () => {
  time = await kit.createPulses()
  c = time.c
})
after(() => c?.stop())

const hold = (runs: string[], then?: Parameters<typeof holdPlacements>[2]) => holdPlacements(c, runs, then)
const owed = () => owedTo(c.db)

async function isJudged({ offer }: Held): Promise<boolean> {
  const limitMs = pulseLimitMs({ sweepMs: SWEEP_MS })
  const found = await c.deps.db.begin((tx) => recheck(tx, [offer.run], { offerMs: OFFER_MS, limitMs }))
  return found.get(offer.run)!.leaseOver
}

const leaseMs = async ({ offer }: Held) => (await time.remaining(offer.run)).leaseMs

test('after an outage all leases but the one that is held are lengthened, and that one once it is free', async () => {
  const pulse = await time.aCoordinatorAmong()
  const [one, other] = [await time.held(), await time.held()]
  const free = await hold([one.offer.run])
  await time.pass(5 * MINUTE)
  const line = await pulse()
  assert.deepEqual([line!.passedOver, line!.placements > 0], [1, true])
  about(await leaseMs(other), FLOOR_MS)
  assert.ok((await leaseMs(one)) < 0)
  assert.ok(!(await time.late()).includes(one.offer.run))
  await time.pass(SWEEP_MS)
  assert.equal(await pulse(), undefined, 'no gap, and nothing to do while it is held')
  await free()
  assert.equal(await isJudged(one), false)
  assert.ok(!(await time.late()).includes(one.offer.run))
  assert.deepEqual([(await pulse())?.placements, await owed()], [1, []])
  about(await leaseMs(one), FLOOR_MS - SWEEP_MS)
  about((await time.remaining(one.offer.run)).lengthenedMs, 5 * MINUTE + FLOOR_MS - LEASE_MS)
  for (let passed = 0; passed < FLOOR_MS; passed += SWEEP_MS) {
    await time.pass(SWEEP_MS)
    await pulse()
  }
  assert.ok((await time.late()).includes(one.offer.run), 'judged like any other')
})

test('leases of dead agents are judged while a placement is held after a gap', async () => {
  const pulse = await time.aCoordinatorAmong({ amnestyMs: 0 })
  const [one, dead] = [await time.held(), await time.held()]
  const free = await hold([one.offer.run])
  await time.pass(5 * MINUTE)
  await pulse()
  for (let passed = 0; passed < LEASE_MS + SWEEP_MS; passed += SWEEP_MS) {
    await time.pass(SWEEP_MS)
    await pulse()
  }
  const late = await time.late()
  assert.deepEqual([late.includes(dead.offer.run), late.includes(one.offer.run)], [true, false])
  await free()
  await pulse()
})

test('several gaps in a row are made up for once each, whoever finds them', async () => {
  const pulses = [await time.aCoordinatorAmong({ amnestyMs: 0 }), await time.aCoordinatorAmong({ amnestyMs: 0 })]
  const one = await time.held()
  await time.leaseOf(one, 10 * MINUTE)
  const free = await hold([one.offer.run])
  for (const minutes of [5, 7, 1]) {
    await time.pass(minutes * MINUTE)
    await Promise.all(pulses.map((pulse) => pulse()))
  }
  await time.aStart({ amnestyMs: 0 })
  await free()
  await Promise.all(pulses.map((pulse) => pulse()))
  assert.deepEqual(await owed(), [])
  about(await leaseMs(one), 10 * MINUTE)
  about((await time.remaining(one.offer.run)).lengthenedMs, 13 * MINUTE)
})

test('the floor of one gap stands still in the next', async () => {
  const pulse = await time.aCoordinatorAmong()
  await time.calm(pulse)
  const one = await time.held()
  const free = await hold([one.offer.run])
  await time.pass(5 * MINUTE)
  await pulse()
  for (let i = 0; i < 20; i++) {
    await time.pass(SWEEP_MS)
    await pulse()
  }
  await time.pass(2 * MINUTE)
  await pulse()
  await free()
  await pulse()
  about(await leaseMs(one), FLOOR_MS)
})

test('a renewal after the gap pays for it, at the next pulse, while its placement is held again', async () => {
  const pulse = await time.aCoordinatorAmong()
  const one = await time.held()
  const free = await hold([one.offer.run])
  await time.pass(5 * MINUTE)
  await pulse()
  await free()
  await time.leaseOf(one, LEASE_MS)
  const again = await hold([one.offer.run])
  for (let i = 0; i < 2; i++) {
    await time.pass(SWEEP_MS)
    assert.equal(await pulse(), undefined)
  }
  await again()
  assert.deepEqual(await owed(), [])
  about(await leaseMs(one), LEASE_MS - 2 * SWEEP_MS)
})

test('a renewal from before the gap that is committed after it pays for nothing', async () => {
  const pulse = await time.aCoordinatorAmong({ amnestyMs: 0 })
  const one = await time.held()
  const [{ at }] = await c.db<[{ at: Date }]>`select shifted.now() as at`
  const free = await hold(
    [one.offer.run],
    (tx) => tx`
      update placements
      set renewed_at = ${at}, lease_expires_at = ${at}::timestamptz + interval '75 s'
      where run_id = ${one.offer.run}`,
  )
  await time.pass(5 * MINUTE)
  await pulse()
  await free()
  assert.equal(await isJudged(one), false)
  await pulse()
  about(await leaseMs(one), LEASE_MS)
})

test('a lease by a clock that was ahead lasts for its length from when it is free', async () => {
  const pulse = await time.aCoordinatorAmong({ amnestyMs: 0 })
  await time.calm(pulse)
  await moveClock(c.db, 2 * MINUTE)
  await pulse()
  const one = await time.held()
  const free = await hold([one.offer.run])
  await moveClock(c.db, -2 * MINUTE)
  assert.equal((await pulse())!.passedOver, 1)
  await free()
  await pulse()
  about(await leaseMs(one), LEASE_MS)
  const [row] = await c.db`
    select renewed_at <= shifted.now() as is_past from placements where run_id = ${one.offer.run}`
  assert.equal(row!.isPast, true)
})

test('an offer that was held is not late until it is lengthened', async () => {
  const pulse = await time.aCoordinatorAmong()
  const agent = await anAgent(c)
  c.onStop(() => agent.close())
  const { id } = await aRun(c, { workflow: 'any' })
  await agent.poll()
  const free = await hold([id])
  await time.pass(5 * MINUTE)
  await pulse()
  await time.pass(SWEEP_MS)
  await pulse()
  assert.ok(!(await time.late()).includes(id))
  await free()
  await pulse()
  assert.ok(!(await time.late()).includes(id))
  await time.calm(pulse)
  assert.ok((await time.late()).includes(id))
})

test('what is owed to a placement that is gone is forgotten', async () => {
  const pulse = await time.aCoordinatorAmong()
  const one = await time.held()
  const free = await hold(
    [one.offer.run],
    (tx) => tx`update placements set epoch = epoch + 1 where run_id = ${one.offer.run}`,
  )
  await time.pass(5 * MINUTE)
  await pulse()
  assert.deepEqual(await owed(), [one.offer.run])
  await free()
  assert.ok((await time.late()).includes(one.offer.run), 'another placement is owed nothing')
  for (let i = 0; i < 2; i++) {
    await time.pass(SWEEP_MS)
    assert.equal(await pulse(), undefined)
  }
  assert.deepEqual(await owed(), [])
})

test('a pulse that waited for another one owes and pays nothing twice', async (t) => {
  const [first, second] = [
    await time.aCoordinatorAmong({ amnestyMs: 0 }),
    await time.aCoordinatorAmong({ amnestyMs: 0 }),
  ]
  const one = await time.held()
  await time.leaseOf(one, 10 * MINUTE)
  const free = await hold([one.offer.run])
  await time.pass(5 * MINUTE)
  const opener = openDatabase({ url: c.deps.config.databaseUrl, max: 1, log: c.deps.log })
  t.after(() => opener.close())
  const [isHeld, go] = [Promise.withResolvers<void>(), Promise.withResolvers<void>()]
  const inFront = opener.db.begin(async (tx) => {
    await tx`select from pulse for update`
    isHeld.resolve()
    await go.promise
  })
  await isHeld.promise
  const pulsed = [first(), second()]
  await untilPolled('both to wait', async () => (await countBlocked(c.db, '%from pulse%')) === 2)
  go.resolve()
  await inFront
  const lines = await Promise.all(pulsed)
  assert.equal(lines.filter((line) => line?.passedOver === 1).length, 1)
  await free()
  await Promise.all([first(), second()])
  about(await leaseMs(one), 10 * MINUTE)
})
