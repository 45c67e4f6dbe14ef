// A heartbeat waits for no placement that somebody holds: all leases of its agent are renewed, and nothing is judged.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { type Held, placementOf, takeNext } from '../_kit/agent.ts'
import { aRun, type TestCoordinator } from '../_kit/coordinator.ts'
import { moveClock } from '../_kit/database-clock.ts'
import { holdPlacements, owedTo } from '../_kit/held-placements.ts'
import * as kit from '../_kit/pulses.ts'

const { about, LEASE_MS, MINUTE, SWEEP_MS } = kit

let c: TestCoordinator
let time: kit.Pulses
let pulse: Awaited<ReturnType<kit.Pulses['aCoordinatorAmong']>>

before(async () => {
  time = await kit.createPulses()
  c = time.c
  pulse = await time.aCoordinatorAmong({ amnestyMs: 0 })
})
after(() => c?.stop())

const remaining = ({ offer }: Pick<Held, 'offer'>) => time.remaining(offer.run)

let beats = 0
const beat = ({ link }: Held, ...held: Pick<Held, 'offer'>[]) =>
  link.heartbeat((beats += 1), ...held.map(({ offer }) => placementOf(offer)))

async function pass(ms: number): Promise<void> {
  for (let passed = 0; passed < ms; passed += SWEEP_MS) {
    await time.pass(SWEEP_MS)
    await pulse()
  }
}

test('all leases of an agent are renewed, though somebody holds one of its placements', async () => {
  const one = await time.held()
  await aRun(c, { workflow: 'any' })
  const other = { offer: await takeNext(one.agent, one.link) }
  await pass(MINUTE)
  const free = await holdPlacements(c, [one.offer.run])
  assert.deepEqual((await beat(one, one, other)).stale, [])
  about((await remaining(other)).leaseMs, LEASE_MS)
  assert.deepEqual(await owedTo(c.db), [one.offer.run])
  await pass(MINUTE)
  assert.ok((await remaining(one)).leaseMs < 0)
  await free()
  assert.deepEqual((await time.late()).includes(one.offer.run), false)
  assert.equal(await pulse(), undefined, 'nobody was late, and nothing is told as a lengthening')
  const { leaseMs, lengthenedMs } = await remaining(one)
  about(leaseMs, LEASE_MS - MINUTE)
  assert.deepEqual([lengthenedMs, await owedTo(c.db)], [null, []])
  await pass(MINUTE)
  assert.ok((await time.late()).includes(one.offer.run), 'judged like any other')
})

test('an outage after such a heartbeat moves its lease on', async () => {
  const one = await time.held()
  await pass(MINUTE)
  const free = await holdPlacements(c, [one.offer.run])
  await beat(one, one)
  await time.pass(5 * MINUTE)
  assert.equal((await pulse())?.passedOver, 1)
  await free()
  assert.equal((await pulse())?.placements, 1)
  const { leaseMs, lengthenedMs } = await remaining(one)
  about(leaseMs, LEASE_MS)
  about(lengthenedMs, 5 * MINUTE)
})

test('such a heartbeat takes the place of what an outage before it owed', async () => {
  const one = await time.held()
  const free = await holdPlacements(c, [one.offer.run])
  await time.pass(5 * MINUTE)
  await pulse()
  await beat(one, one)
  await free()
  await pulse()
  about((await remaining(one)).leaseMs, LEASE_MS)
})

test('a renewal by a clock that was ahead lasts for its length from when that is noticed', async () => {
  const one = await time.held()
  await time.calm(pulse)
  await moveClock(c.db, 2 * MINUTE)
  await pulse()
  const free = await holdPlacements(c, [one.offer.run])
  await beat(one, one)
  await moveClock(c.db, -2 * MINUTE)
  await pulse()
  await free()
  await pulse()
  about((await remaining(one)).leaseMs, LEASE_MS)
})

test('so it does when the pulse that notices it has not seen that renewal', async () => {
  const one = await time.held()
  await moveClock(c.db, 30 * MINUTE)
  const free = await holdPlacements(c, [one.offer.run])
  await beat(one, one)
  await moveClock(c.db, -30 * MINUTE)
  await free()
  // As a pulse without a gap finds it.
  await c.db`update pulse set at = shifted.now()`
  await (
    await time.aCoordinatorAmong({ amnestyMs: 0 })
  )()
  about((await remaining(one)).leaseMs, LEASE_MS)
  assert.deepEqual(await owedTo(c.db), [])
})

test('what is noted by a clock that was ahead for a placement that is gone is forgotten', async () => {
  const one = await time.held()
  await moveClock(c.db, 30 * MINUTE)
  const free = await holdPlacements(
    c,
    [one.offer.run],
    (tx) => tx`update placements set epoch = epoch + 1 where run_id = ${one.offer.run}`,
  )
  await beat(one, one)
  await moveClock(c.db, -30 * MINUTE)
  await free()
  await pulse()
  await pass(2 * SWEEP_MS)
  assert.deepEqual(await owedTo(c.db), [])
})

test('a heartbeat that could be written later needs no note any more', async () => {
  const one = await time.held()
  const free = await holdPlacements(c, [one.offer.run])
  await beat(one, one)
  await free()
  await pass(SWEEP_MS)
  await beat(one, one)
  const again = await holdPlacements(c, [one.offer.run])
  await pass(2 * SWEEP_MS)
  assert.deepEqual(await owedTo(c.db), [])
  await again()
})

test('a placement that was taken away meanwhile is owed nothing, as the next heartbeat hears', async () => {
  const one = await time.held()
  const free = await holdPlacements(
    c,
    [one.offer.run],
    (tx) => tx`update placements set epoch = epoch + 1 where run_id = ${one.offer.run}`,
  )
  await beat(one, one)
  await free()
  await pass(2 * SWEEP_MS)
  assert.deepEqual(await owedTo(c.db), [])
  assert.deepEqual((await beat(one, one)).stale, [placementOf(one.offer)])
})

test('an agent may name a run twice whose placement somebody holds', async () => {
  const one = await time.held()
  const free = await holdPlacements(c, [one.offer.run])
  assert.deepEqual((await beat(one, one, one)).stale, [])
  await free()
  await pulse()
  assert.deepEqual(await owedTo(c.db), [])
})

test('an agent that was started again is let in, though somebody holds what it does not know any more', async () => {
  const one = await time.held()
  await aRun(c, { workflow: 'any' })
  const other = { offer: await takeNext(one.agent, one.link) }
  await pass(MINUTE)
  const free = await holdPlacements(c, [one.offer.run])
  one.link.close()
  await one.agent.connect([placementOf(other.offer)])
  about((await remaining(other)).leaseMs, LEASE_MS)
  await pass(LEASE_MS)
  assert.ok((await time.late()).includes(one.offer.run), 'lost with its lease at the latest')
  await free()
})

test('an agent hears of a cancellation though somebody holds the placement', async () => {
  const one = await time.held()
  await c.db`update runs set timed_out_at = now() where id = ${one.offer.run}`
  const free = await holdPlacements(c, [one.offer.run])
  const { stale, cancel } = await beat(one, one)
  assert.deepEqual([stale, cancel.map(({ run, why }) => [run, why])], [[], [[one.offer.run, 'timed-out']]])
  await free()
})
