import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { openDatabase } from '../../db/client.ts'
import { recheck } from '../../engine/store/placements.ts'
import { pulseLimitMs } from '../../engine/store/pulse.ts'
import { anAgent, type Held } from '../_kit/agent.ts'
import { aRun, type TestCoordinator } from '../_kit/coordinator.ts'
import { moveClock } from '../_kit/database-clock.ts'
import * as kit from '../_kit/pulses.ts'

const { about, FLOOR_MS, LEASE_MS, MINUTE, OFFER_MS, SECOND, SLACK_MS, SWEEP_MS } = kit

// Nothing here waits: nobody sweeps, and time passes when a test says so.

let c: TestCoordinator
let pass: kit.Pulses['pass']
let calm: kit.Pulses['calm']
let aCoordinatorAmong: kit.Pulses['aCoordinatorAmong']
let aStart: kit.Pulses['aStart']
let held: kit.Pulses['held']
let leaseOf: kit.Pulses['leaseOf']
let remaining: kit.Pulses['remaining']
let late: kit.Pulses['late']

before(async () => {
  ;({ c, pass, calm, aCoordinatorAmong, aStart, held, leaseOf, remaining, late } = await kit.createPulses())
})
after(() => c?.stop())

test('an outage of 5 minutes takes no run away, and all leases last as long as before it, 90 s at least', async () => {
  const pulse = await aCoordinatorAmong()
  const [one, pool] = [await held(), await held()]
  // Of a pool that gives runs away after ten minutes.
  await leaseOf(pool, 10 * MINUTE)
  await pass(302 * SECOND)
  assert.deepEqual(await late(), [], 'nothing is judged before a pulse')
  const line = await pulse()
  about(line!.gapMs, 302 * SECOND)
  assert.deepEqual(await late(), [])
  const [after, longer] = [await remaining(one.offer.run), await remaining(pool.offer.run)]
  about(after.leaseMs, FLOOR_MS)
  about(after.lengthenedMs, 302 * SECOND + FLOOR_MS - LEASE_MS)
  about(longer.leaseMs, 10 * MINUTE)
  about(longer.lengthenedMs, 302 * SECOND)
})

test('a run whose agent does not come back after an outage is taken away a lease later', async () => {
  const pulse = await aCoordinatorAmong()
  const { offer } = await held()
  await pass(5 * MINUTE)
  await pulse()
  for (let i = 0; i < 8; i++) {
    await pass(SWEEP_MS)
    assert.equal(await pulse(), undefined, 'no gap')
  }
  assert.ok(!(await late()).includes(offer.run))
  for (let i = 0; i < 12; i++) {
    await pass(SWEEP_MS)
    await pulse()
  }
  assert.ok((await late()).includes(offer.run))
})

test('a coordinator that stood still while another one served lengthens nothing', async () => {
  const [stopped, serving] = [await aCoordinatorAmong(), await aCoordinatorAmong()]
  const { offer } = await held()
  for (let i = 0; i < 60; i++) {
    await pass(SWEEP_MS)
    assert.equal(await serving(), undefined)
  }
  assert.equal(await stopped(), undefined)
  assert.ok((await late()).includes(offer.run))
})

test('of two coordinators that find the same gap one makes up for it', async () => {
  const pulses = [await aCoordinatorAmong(), await aCoordinatorAmong(), await aCoordinatorAmong()]
  const { offer } = await held()
  await leaseOf({ offer } as Held, 10 * MINUTE)
  await pass(5 * MINUTE)
  const lines = await Promise.all(pulses.map((pulse) => pulse()))
  assert.equal(lines.filter(Boolean).length, 1)
  about((await remaining(offer.run)).leaseMs, 10 * MINUTE)
})

for (const [jump, what] of [
  [2 * MINUTE, 'forward by two minutes'],
  // Less than what passes between sweeps that nobody would call an outage.
  [12 * SECOND, 'forward by 12 seconds'],
] as const)
  test(`a clock of the database that is set ${what} shortens no lease`, async () => {
    const pulses = [await aCoordinatorAmong(), await aCoordinatorAmong()]
    const { offer } = await held()
    await leaseOf({ offer } as Held, 10 * MINUTE)
    await moveClock(c.db, jump)
    const lines = []
    for (const pulse of pulses) lines.push(await pulse())
    assert.equal(lines.filter(Boolean).length, 1, 'once, by whoever sees it first')
    about((await remaining(offer.run)).leaseMs, 10 * MINUTE, 4 * SECOND)
    assert.deepEqual(await late(), [])
  })

test('a clock that is set back by two minutes keeps no dead agent’s run for two minutes more', async () => {
  const pulse = await aCoordinatorAmong()
  const [before, since] = [await held(), await held()]
  await leaseOf(before, 10 * MINUTE)
  await moveClock(c.db, -2 * MINUTE)
  // Renewed between the jump and the pulse that finds it.
  await leaseOf(since, 10 * MINUTE)
  const line = await pulse()
  about(line!.setBackMs, 2 * MINUTE)
  about((await remaining(before.offer.run)).leaseMs, 10 * MINUTE)
  about((await remaining(since.offer.run)).leaseMs, 10 * MINUTE)
  const [row] = await c.db`
    select renewed_at <= shifted.now() and accepted_at <= shifted.now() and offered_at <= shifted.now() as is_past
    from placements
    where run_id = ${before.offer.run}`
  assert.equal(row!.isPast, true)
})

test('an outage from which the database comes back with its clock two minutes behind is one all the same', async () => {
  const pulse = await aCoordinatorAmong()
  const { offer } = await held()
  await pass(2 * MINUTE + 3 * SECOND)
  await moveClock(c.db, -2 * MINUTE)
  assert.ok(await pulse())
  about((await remaining(offer.run)).leaseMs, FLOOR_MS)
})

test('a start gives every lease 90 s', async () => {
  await (
    await aCoordinatorAmong()
  )()
  const { offer } = await held()
  await leaseOf({ offer } as Held, 2 * SECOND)
  await pass(SECOND)
  await aStart()
  about((await remaining(offer.run)).leaseMs, FLOOR_MS)
})

test('a coordinator that is started again and again spares dead agents for five minutes, not for ever', async () => {
  const serving = await aCoordinatorAmong()
  await calm(serving)
  const { offer } = await held()
  let spared = 0
  for (let i = 0; i < 50 && !(await late()).includes(offer.run); i++) {
    await pass(10 * SECOND)
    spared += 10 * SECOND
    await serving()
    await aStart()
  }
  // The last start that gave 90 s was before the five minutes were over.
  about(spared, 5 * MINUTE + FLOOR_MS, 2 * SLACK_MS + SECOND)
})

test('what is put off after an outage is so as long as leases last, and in no row of starts for ever', async () => {
  const serving = await aCoordinatorAmong()
  await calm(serving)
  assert.equal(c.deps.grace.now(), undefined)
  await pass(5 * MINUTE)
  await serving()
  about(c.deps.grace.now()!.leftMs, FLOOR_MS)
  await calm(serving)
  let spared = 0
  for (let i = 0; i < 50 && (i === 0 || c.deps.grace.now() !== undefined); i++) {
    await pass(10 * SECOND)
    spared += 10 * SECOND
    await serving()
    await aStart()
  }
  about(spared, 5 * MINUTE, 2 * SLACK_MS + SECOND)
  await aStart({ amnestyMs: 0 })
  assert.equal(c.deps.grace.now(), undefined)
})

test('without an amnesty leases stand still in a gap, and a start gives nothing', async () => {
  const pulse = await aCoordinatorAmong({ amnestyMs: 0 })
  const { offer } = await held()
  await pass(5 * MINUTE)
  await pulse()
  about((await remaining(offer.run)).leaseMs, LEASE_MS)
  await aStart({ amnestyMs: 0 })
  about((await remaining(offer.run)).leaseMs, LEASE_MS)
})

test('an offer that could not be accepted is not late', async () => {
  const pulse = await aCoordinatorAmong()
  const agent = await anAgent(c)
  c.onStop(() => agent.close())
  const { id } = await aRun(c, { workflow: 'any' })
  await agent.poll()
  await pass(5 * MINUTE)
  await pulse()
  assert.ok(!(await late()).includes(id))
  await calm(pulse)
  assert.ok((await late()).includes(id))
})

test('a sweep that stood still between its pulse and its look judges nothing', async () => {
  const pulse = await aCoordinatorAmong()
  const { offer } = await held()
  await pulse()
  await leaseOf({ offer } as Held, 0)
  assert.ok((await late()).includes(offer.run))
  await pass(20 * SECOND)
  assert.ok(!(await late()).includes(offer.run))
  const limitMs = pulseLimitMs({ sweepMs: SWEEP_MS })
  const found = await c.deps.db.begin((tx) => recheck(tx, [offer.run], { offerMs: OFFER_MS, limitMs }))
  assert.equal(found.get(offer.run)?.leaseOver, false)
  await pulse()
  assert.ok(!(await late()).includes(offer.run))
})

test('a pulse that waits for its connection lengthens no lease while another coordinator pulses', async (t) => {
  const other = await aCoordinatorAmong()
  const slow = openDatabase({ url: c.deps.config.databaseUrl, max: 1, log: c.deps.log })
  t.after(() => slow.close())
  const pulse = await aCoordinatorAmong({ db: slow.db })
  await calm(pulse)
  const { offer } = await held()
  const free = Promise.withResolvers<void>()
  const taken = slow.db.begin(() => free.promise)
  const pulsed = pulse()
  for (let i = 0; i < 2; i++) {
    await pass(4 * SECOND)
    assert.equal(await other(), undefined)
  }
  free.resolve()
  await taken
  assert.equal(await pulsed, undefined)
  about((await remaining(offer.run)).leaseMs, LEASE_MS - 8 * SECOND)
})

test('a small jump that a coordinator met which had just started is put right by another', async () => {
  const pulse = await aCoordinatorAmong({ amnestyMs: 0 })
  await calm(pulse)
  const { offer } = await held()
  await moveClock(c.db, 12 * SECOND)
  await aStart({ amnestyMs: 0 })
  assert.ok(await pulse())
  about((await remaining(offer.run)).leaseMs, LEASE_MS)
})
