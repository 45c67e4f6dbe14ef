// Deliveries that nobody has signed, from any number of addresses: what of them reaches the disk is bounded.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { createUnverifiedCounts } from '../../inbound/unverified.ts'
import { aCoordinatorOfItsOwn, type TestCoordinator } from '../_kit/coordinator.ts'
import { aSession } from '../_kit/credentials.ts'
import { aKeyText } from '../_kit/environments.ts'
import { aHook, deliver, type Hook } from '../_kit/inbound.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let session: string

before(async () => {
  // As if each came from another address.
  c = await aCoordinatorOfItsOwn({ SECRET_KEY: aKeyText(), LIMIT_UNVERIFIED_PER_MIN: 0 })
  session = await aSession(c.db, { orgId: c.orgId })
})
after(() => c.stop())

async function aReceiver(): Promise<Hook> {
  const { slug } = await aWorkflow(c)
  return aHook(c, session, slug)
}

/** Answers how they were answered. */
async function flood(hook: Hook, count: number, body: string): Promise<Set<number>> {
  const statuses = new Set<number>()
  for (let left = count; left > 0; left -= 20)
    for (const { status } of await Promise.all(
      Array.from({ length: Math.min(20, left) }, () => deliver(hook, { body, signature: 't=1,v1=00' })),
    ))
      statuses.add(status)
  return statuses
}

interface Stored {
  id: string
  reason: string
  isCut: boolean
  bytes: number
  payloadBytes: number
}

const stored = (hook: Hook) => c.db<Stored[]>`
  select id, reason, is_cut, length(payload) as bytes, payload_bytes
  from deliveries
  where source_id = ${hook.id} and outcome = 'unverified'
  order by id`

const KIB = 1024

/** As if so many had come in this minute before. */
function alreadyCame(hook: Hook, count: number): void {
  for (let i = 0; i < count; i++) c.deps.countUnverified(hook.id, 10)
}

test('after a hundred in a minute only the head is kept', async () => {
  const hook = await aReceiver()
  alreadyCame(hook, 90)
  assert.deepEqual(await flood(hook, 20, 'x'.repeat(8 * KIB)), new Set([401]))
  const rows = await stored(hook)
  assert.deepEqual([rows.filter((row) => !row.isCut).length, rows.length], [10, 20])
  for (const { isCut, bytes, payloadBytes, reason } of rows) {
    assert.deepEqual([bytes, payloadBytes], [isCut ? 4 * KIB : 8 * KIB, 8 * KIB])
    assert.equal(reason.includes('. Only the beginning of the payload is kept: more than 100 deliveries'), isCut)
  }
})

test('after a thousand in a minute only their number is kept', async () => {
  const hook = await aReceiver()
  alreadyCame(hook, 1000)
  assert.deepEqual(await flood(hook, 20, 'x'.repeat(8 * KIB)), new Set([401]))
  const [row, ...others] = await stored(hook)
  assert.deepEqual([others.length, row!.isCut, row!.bytes], [0, true, 0])
  assert.match(row!.reason, /^At least \d+ further deliveries of this minute could not be verified/)
  const { delivery } = await c.call(ops.deliveries.get, { delivery: row!.id })
  assert.deepEqual([delivery.payload.kept, delivery.payload.text], ['cut', ''])
})

test('the newest hundred of each sort are kept: heads and counts do not displace whole ones', async () => {
  const hook = await aReceiver()
  await flood(hook, 1, 'x'.repeat(8 * KIB))
  alreadyCame(hook, 99)
  await flood(hook, 110, 'x'.repeat(8 * KIB))
  // Two that commit at once do not see each other's rows: the next one takes them away.
  await flood(hook, 1, 'x'.repeat(8 * KIB))
  const rows = await stored(hook)
  assert.deepEqual([rows.filter((row) => !row.isCut).length, rows.length], [1, 101])
})

test('a verified one amid them is whole, and another source is not concerned', async () => {
  const [hook, other] = [await aReceiver(), await aReceiver()]
  const body = JSON.stringify({ text: 'y'.repeat(8 * KIB) })
  alreadyCame(hook, 120)
  await flood(hook, 1, 'x')
  const { receipt } = await deliver(hook, { body })
  const { delivery } = await c.call(ops.deliveries.get, { delivery: receipt.delivery.id })
  assert.deepEqual([delivery.payload.kept, delivery.payload.bytes], ['whole', body.length])
  await deliver(other, { body, signature: null })
  assert.deepEqual(
    (await stored(other)).map(({ isCut }) => isCut),
    [false],
  )
})

test('of large ones fewer are kept whole', async () => {
  const hook = await aReceiver()
  await flood(hook, 20, 'x'.repeat(KIB * KIB))
  const rows = await stored(hook)
  assert.deepEqual([rows.filter((row) => !row.isCut).length, rows.length], [16, 20])
})

test('counts are of a minute, and told once a second', () => {
  let now = 0
  const count = createUnverifiedCounts(() => now)
  const next = () => count('hook_1', 10)
  for (let i = 0; i < 1000; i++) assert.equal(next().what, i < 100 ? 'whole' : 'head')
  const first = next()
  assert.ok(first.what === 'count' && first.isFirst)
  assert.equal(next().what, 'nothing')
  assert.equal(count('hook_2', 10).what, 'whole')
  now = 1000
  const second = next()
  assert.ok(second.what === 'count' && !second.isFirst && second.id === first.id)
  assert.match(second.reason, /^At least 3 further/)
  now = 60_000
  assert.equal(next().what, 'whole')
})
