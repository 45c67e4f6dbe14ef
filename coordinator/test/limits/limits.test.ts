import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { DEADLINE_MS } from '@windlass/shared/test/_kit/until.ts'
import type { Caller } from '../../actor.ts'
import type { Database } from '../../db/client.ts'
import type { Limits, Decision } from '../../limits/limits.ts'
import { cleanWindows } from '../../limits/open.ts'
import { testDatabase } from '../_kit/database.ts'
import { untilPolled } from '../_kit/until.ts'
import {
  aCaller,
  admitted,
  type Asked,
  atOnce,
  headerOf,
  readQuotas,
  type SomeLimits,
  someLimits,
} from './some-limits.ts'

let database: Database
const opened: SomeLimits[] = []

before(async () => {
  database = await testDatabase()
})
after(async () => {
  await Promise.all(opened.map((limits) => limits.close()))
  await database.close()
})

function over(asked: Asked): SomeLimits {
  // On a busy machine half a second is little, and then each coordinator counts by itself.
  const limits = someLimits(database.url, { patienceMs: DEADLINE_MS, ...asked })
  opened.push(limits)
  return limits
}

/** As if the window had begun so long ago. */
async function age(key: string, ms: number): Promise<void> {
  await database.db`update rate_limits set expire = expire - ${ms} where key = ${key}`
}

async function storm(limits: Limits[], caller: Caller, takes: number): Promise<Decision[]> {
  return (await Promise.all(limits.map((each) => atOnce(each, caller, takes)))).flat()
}

const isServed = ({ refusal }: Decision) => refusal === null

/** What all coordinators have drawn for an identity in its window. */
async function drawn(id: string): Promise<number> {
  const rows = await database.db<{ points: number }[]>`select points from rate_limits where key = ${`i:${id}`}`
  return rows[0]?.points ?? 0
}

test('as many requests pass as the limit says, and the next is refused with its bucket and the time to wait', async () => {
  const limits = over({ identity: 7 })
  const caller = aCaller()
  assert.equal(await admitted(limits, caller, 7), 7)
  const { refusal } = await limits.take(caller)
  assert.equal(refusal?.code, 'RATE_LIMITED')
  assert.equal(refusal.status, 429)
  assert.match(refusal.message, /^This key has used up its 7 requests in 60 s; try again in \d+ s\.$/)
  const { retryAfterMs, ...detail } = refusal.detail as { retryAfterMs: number }
  assert.deepEqual(detail, { scope: 'identity', limit: 7, windowMs: 60_000 })
  assert.ok(retryAfterMs > 0 && retryAfterMs <= 60_000)
})

test('zero is no limit, and says nothing of one', async () => {
  const limits = over({})
  const caller = aCaller()
  assert.equal(await admitted(limits, caller, 1000), 1000)
  assert.deepEqual(await limits.take(caller), { refusal: null, headers: [] })
})

test('two coordinators admit the limit together, but for what one of them holds', async () => {
  for (const limit of [1, 3, 29, 30, 31, 100, 601]) {
    const caller = aCaller()
    const pair = [over({ identity: limit }), over({ identity: limit })] as const
    const decisions = await storm([...pair], caller, limit + 5)
    const served = decisions.filter(isServed).length
    const block = Math.max(1, Math.floor(limit / 30))
    assert.ok(served <= limit, `${served} of ${limit}`)
    assert.ok(served >= limit - 2 * block, `${served} of ${limit}`)
    // Both have asked until they were refused, so that nothing is left that somebody holds.
    assert.equal(served, limit)
  }
})

test('a coordinator that has come to rest holds no more than a twentieth of the limit', async () => {
  const caller = aCaller()
  const [busy, other] = [over({ identity: 600 }), over({ identity: 600 })]
  assert.equal(await admitted(busy, caller, 250), 250)
  const served = await admitted(other, caller, 600)
  assert.ok(served >= 600 - 250 - 30, String(served))
  assert.ok(served <= 600 - 250)
})

test('a storm on both buckets admits exactly what the tighter one has', async () => {
  const pair = [over({ identity: 50, org: 90 }), over({ identity: 50, org: 90 })]
  const orgId = aCaller().orgId
  const decisions = await Promise.all(Array.from({ length: 3 }, () => storm(pair, aCaller({ orgId }), 60)))
  assert.equal(decisions.flat().filter(isServed).length, 90)
})

test('identities have a bucket each', async () => {
  const limits = over({ identity: 5 })
  const [one, two] = [aCaller(), aCaller()]
  assert.equal(await admitted(limits, one, 8), 5)
  assert.equal(await admitted(limits, two, 8), 5)
})

test('the keys of an org share its bucket, and another org has its own', async () => {
  const limits = over({ identity: 100, org: 10 })
  const orgId = aCaller().orgId
  const served = await Promise.all([1, 2, 3].map(() => admitted(limits, aCaller({ orgId }), 8)))
  assert.equal(
    served.reduce((a, b) => a + b),
    10,
  )
  const refused = await limits.take(aCaller({ orgId }))
  assert.match(refused.refusal?.message ?? '', /^The org acme has used up its 10 requests/)
  assert.equal(refused.refusal?.detail?.scope, 'org')
  assert.equal(await admitted(limits, aCaller(), 8), 8)
})

test('what the org refuses costs the identity nothing, and the other way round', async () => {
  const limits = over({ identity: 20, org: 30 })
  const orgId = aCaller().orgId
  const [greedy, other] = [aCaller({ orgId }), aCaller({ orgId })]
  assert.equal(await admitted(limits, greedy, 50), 20)
  // Thirty refusals of the identity have left the org its ten.
  assert.equal(await admitted(limits, other, 40), 10)
  const decision = await limits.take(other)
  assert.equal(readQuotas(headerOf(decision, 'ratelimit')).identity?.amount, 10)
})

test('when the window ends there are requests again', async () => {
  const limits = over({ identity: 10, windowMs: 300 })
  const caller = aCaller()
  await untilPolled('a refusal', async () => !isServed(await limits.take(caller)))
  await untilPolled('a new window', async () => isServed(await limits.take(caller)))
  assert.equal(readQuotas(headerOf(await limits.take(caller), 'ratelimit')).identity?.amount, 8)
})

test('what was held dies with its window', async () => {
  const limits = over({ identity: 600, windowMs: 300 })
  const caller = aCaller()
  await limits.take(caller)
  await untilPolled('the end of the window', async () => {
    const [row] = await database.db<
      [{ expire: string }]
    >`select expire from rate_limits where key = ${`i:${caller.id}`}`
    return Number(row.expire) < Date.now()
  })
  await limits.take(caller)
  // The block of this window, and of none before it.
  assert.equal(await drawn(caller.id), 20)
})

test('a window that has ended in the store begins anew for a coordinator that knew nothing of it', async () => {
  const caller = aCaller()
  const first = over({ identity: 10 })
  assert.equal(await admitted(first, caller, 20), 10)
  await age(`i:${caller.id}`, 61_000)
  assert.equal(await admitted(over({ identity: 10 }), caller, 20), 10)
  // The first has been told of a window that is not over yet.
  assert.equal(await admitted(first, caller, 1), 0)
})

for (const [what, minutes] of [
  ['ahead', 10],
  ['behind', -60],
] as const)
  test(`a window lasts no longer for a coordinator whose clock is ${what}`, async (t) => {
    const caller = aCaller()
    const now = Date.now
    const { mock } = t.mock.method(Date, 'now', () => now() + minutes * 60_000)
    assert.equal(await admitted(over({ identity: 10 }), caller, 20), 10)
    mock.restore()
    // Of the same window, whoever asks.
    assert.equal(await admitted(over({ identity: 10 }), caller, 20), 0)
    await age(`i:${caller.id}`, 61_000)
    assert.equal(await admitted(over({ identity: 10 }), caller, 20), 10)
  })

test('a window that ends later than one can begins anew: the clock of the database was set back', async () => {
  const caller = aCaller()
  assert.equal(await admitted(over({ identity: 10 }), caller, 20), 10)
  await age(`i:${caller.id}`, -3_600_000)
  assert.equal(await admitted(over({ identity: 10 }), caller, 20), 10)
  assert.equal(await admitted(over({ identity: 10 }), caller, 20), 0)
})

test('windows that ended an hour ago are forgotten', async () => {
  const { db } = database
  await db`
    insert into rate_limits (key, points, expire)
    select 'i:' || minutes, 1, extract(epoch from now() - minutes * interval '1 minute') * 1000
    from unnest(${[-1, 58, 62]}::int[]) as minutes`
  await cleanWindows({ db })
  assert.deepEqual([await drawn('-1'), await drawn('58'), await drawn('62')], [1, 1, 0])
})

test('a refusal is given from memory', async () => {
  const limits = over({ identity: 10, org: 10 })
  const caller = aCaller()
  await admitted(limits, caller, 11)
  const before = await drawn(caller.id)
  for (let i = 0; i < 1000; i++) assert.ok(!(limits.take(caller) instanceof Promise))
  assert.equal(await drawn(caller.id), before)
})

test('there is no statement a request: a block serves many, at once', async () => {
  const limits = over({ identity: 3000, org: 3000 })
  const caller = aCaller()
  let waited = 0
  for (let i = 0; i < 1000; i++) {
    const decision = limits.take(caller)
    if (decision instanceof Promise) waited++
    assert.equal((await decision).refusal, null)
  }
  // A block has 100, and the next is asked for when half of one is left.
  assert.ok((await drawn(caller.id)) <= 11 * 100)
  assert.ok(waited <= 11, String(waited))
})

test('takes that come at once share one draw', async () => {
  const limits = over({ identity: 3000 })
  const caller = aCaller()
  const decisions = await storm([limits], caller, 100)
  assert.equal(decisions.filter(isServed).length, 100)
  // The block that they waited for, and the one that was fetched ahead.
  assert.ok((await drawn(caller.id)) <= 200)
})

test('the headers say the policy and what is left of it', async () => {
  const limits = over({ identity: 60, org: 600 })
  const caller = aCaller()
  await admitted(limits, caller, 9)
  const decision = await limits.take(caller)
  assert.deepEqual(readQuotas(headerOf(decision, 'ratelimit-policy')), {
    identity: { amount: 60, seconds: 60 },
    org: { amount: 600, seconds: 60 },
  })
  const left = readQuotas(headerOf(decision, 'ratelimit'))
  assert.equal(left.identity?.amount, 50)
  assert.equal(left.org?.amount, 590)
  assert.ok(left.identity.seconds > 50 && left.identity.seconds <= 60)
  await admitted(limits, caller, 50)
  const refused = await limits.take(caller)
  const wait = Number(headerOf(refused, 'retry-after'))
  assert.ok(Number.isInteger(wait) && wait >= 1 && wait <= 60)
  assert.equal(readQuotas(headerOf(refused, 'ratelimit')).identity?.amount, 0)
})
