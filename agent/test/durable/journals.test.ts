import assert from 'node:assert/strict'
import type { JournalRecord } from '@windlass/shared/wire/journal.ts'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { kindsOf, wake } from '../_kit/durable.ts'
import { aHandMade } from '../_kit/hand-made.ts'
import { linesOf } from '../_kit/fake-coordinator.ts'
import { withAgent } from '../_kit/with-agent.ts'

function aRecord(n: number, more: Partial<JournalRecord> = {}): JournalRecord {
  const call = { kind: 'sleep' as const, name: '', hash: 'h', occurrence: n, args: '' }
  const identity = { n, position: n, parent: '', ...call, site: '', drifted: false }
  const state = { state: 'done' as const, result: 'null', delivered: null, after: 0, idle: false, completed: null }
  return { ...identity, ...state, attempt: 1, ...more }
}

const TEXT = JSON.stringify([aRecord(1, { delivered: 1 })])
const TELLS = `frame('live'); say('begun'); const { completions } = await message('wake')
  say(completions.map((each) => each.n).join()); deliver(2); done()`

withAgent('a long journal is fetched, also when that fails at first', async ({ fake }) => {
  const bundle = await aHandMade(TELLS)
  fake.journal = (response) => {
    if (fake.journalFetches < 3) response.writeHead(503).end()
    else response.end(TEXT)
  }
  const placement = fake.offer(bundle, { replay: true, journal: { entries: 1, text: null } })
  await until('it has begun', () => linesOf(placement).includes('begun'))
  assert.equal(fake.journalFetches, 3)
  // The first was given to it before, says its journal.
  wake(fake, placement, 1)
  wake(fake, placement, 1, 2)
  await fake.ending(placement)
  assert.deepEqual(linesOf(placement), ['begun', '2'])
})

withAgent('without its journal nothing begins', async ({ fake }) => {
  fake.journal = (response) =>
    response
      .writeHead(404, { 'content-type': 'application/json' })
      .end('{"error":{"code":"NOT_FOUND","message":"gone"}}')
  const placement = fake.offer(await aHandMade(TELLS), { replay: true, journal: { entries: 1, text: null } })
  const ending = await fake.ending(placement)
  assert.ok(ending.how === 'unready')
  assert.match(ending.reason, /gone/)
  assert.deepEqual(kindsOf(placement), ['end'])
  assert.equal(fake.journalFetches, 1, 'what is gone is not asked for again')
})

withAgent('a wake that comes before the program has begun waits for it', async ({ fake }) => {
  const held: (() => void)[] = []
  fake.journal = (response) => void held.push(() => response.end(TEXT))
  const placement = fake.offer(await aHandMade(TELLS), { replay: true, journal: { entries: 1, text: null } })
  await until('its journal is asked for', () => held.length > 0)
  wake(fake, placement, 2)
  const beats = fake.heard('heartbeat').length
  await until('another heartbeat', () => fake.heard('heartbeat').length > beats)
  held[0]!()
  await fake.ending(placement)
  assert.deepEqual(linesOf(placement), ['begun', '2'])
})
