import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, afterEach, before, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { mintSecret } from '@windlass/shared/api-key.ts'
import { Fault } from '@windlass/shared/errors.ts'
import { createLog } from '@windlass/shared/log.ts'
import { createGate } from '../../call/gate.ts'
import { createStrangers, networkOf } from '../../limits/strangers.ts'
import { aCoordinatorOfItsOwn, type TestCoordinator } from '../_kit/coordinator.ts'
import { RUN, type StubOptions, type StubServer, aCaller, envelope, startStub } from './stub-server.ts'

const CANCEL = `/v1/runs/${RUN}/cancel`
let server: StubServer | undefined

afterEach(async () => {
  await server?.close()
  server = undefined
})

async function serve(options: StubOptions = {}): Promise<StubServer> {
  return (server = await startStub({ limitRefusedPerMin: 5, trustedProxies: ['127.0.0.0/8'], ...options }))
}

function ask(token: string, from: string, path = CANCEL): Promise<Response> {
  const headers = { authorization: `Bearer ${token}`, 'x-forwarded-for': from }
  return fetch(server!.url + path, { method: 'POST', headers })
}

test('guessing credentials from one address ends in 429, and no other address notices', async () => {
  const asked: string[] = []
  const { logged } = await serve({
    caller: (token) => {
      asked.push(token)
      return aCaller(token)
    },
  })
  const answers = await Promise.all(Array.from({ length: 40 }, (_, n) => ask(`guess-${n}`, '192.0.2.1')))
  const count = (status: number) => answers.filter((answer) => answer.status === status).length
  assert.deepEqual([count(401), count(429)], [5, 35])
  assert.equal(asked.length, 5, 'what is over the limit is not looked up')
  const refused = answers.find((answer) => answer.status === 429)!
  assert.match(refused.headers.get('retry-after') ?? '', /^[1-9]\d?$/)
  const { code, detail } = await envelope(refused)
  assert.deepEqual([code, detail?.['scope'], detail?.['limit']], ['RATE_LIMITED', 'address', 5])
  assert.equal((await ask('guess', '192.0.2.2')).status, 401)
  assert.equal((await ask('owner', '192.0.2.2')).status, 503, 'the stub is reached')
  assert.ok(!JSON.stringify(logged).includes('guess'), 'no credential in the log')
})

test('a credential that served goes on from an address where others guess', async () => {
  await serve({ knows: (as, token) => as === 'caller' && token === 'owner' })
  for (let n = 0; n < 6; n++) await ask(`guess-${n}`, '192.0.2.1')
  assert.equal((await ask('owner', '192.0.2.1')).status, 503, 'the stub is reached')
  assert.equal((await ask('member', '192.0.2.1')).status, 429)
})

test('what was not refused does not count', async () => {
  await serve({ caller: (token) => (token === 'away' ? Promise.reject(new Fault('UNAVAILABLE')) : aCaller(token)) })
  for (let n = 0; n < 10; n++) {
    assert.equal((await ask('owner', '192.0.2.1')).status, 503)
    assert.equal((await ask('away', '192.0.2.1')).status, 503)
    assert.equal((await fetch(server!.url + CANCEL, { method: 'POST' })).status, 401, 'without a credential')
  }
})

test('refusals are logged with address and reason, and a flood is not', async () => {
  const { logged } = await serve({ limitRefusedPerMin: 0 })
  const since = performance.now()
  for (let n = 0; n < 200; n++) await ask(`guess-${n}`, '2001:db8::7')
  // Five in each second that was touched, the first and the last too.
  const most = 5 * (Math.floor((performance.now() - since) / 1000) + 2)
  const lines = logged.filter(({ name }) => name === 'credential.refused')
  assert.ok(lines.length >= 5 && lines.length <= most, `${lines.length} lines, ${most} at most`)
  const { as, address, code } = lines[0]!
  assert.deepEqual([as, address, code], ['caller', '2001:db8::7', 'UNAUTHENTICATED'])
})

test('the forwarded address counts only when a trusted proxy forwards it', async () => {
  await serve({ trustedProxies: [] })
  for (let n = 0; n < 5; n++) assert.equal((await ask(`guess-${n}`, `192.0.2.${n}`)).status, 401)
  assert.equal((await ask('guess', '192.0.2.77')).status, 429)
})

test('an address of IPv6 counts by its /64, and one of IPv4 in the form of IPv6 as itself', () => {
  for (const [address, network] of [
    ['192.0.2.1', '192.0.2.1'],
    ['2001:db8:1:2:3:4:5:6', '2001:db8:1:2::/64'],
    ['2001:db8:1:2::9', '2001:db8:1:2::/64'],
    ['2001:0db8:0001:0002:0000:0000:0000:0009', '2001:db8:1:2::/64'],
    ['::1', '0:0:0:0::/64'],
    ['::ffff:192.0.2.1', '192.0.2.1'],
    ['0000:0000:0000:0000:0000:ffff:c000:0201', '192.0.2.1'],
  ])
    assert.equal(networkOf(address!), network, address)
})

test('after a minute an address begins anew', async () => {
  let now = 0
  const strangers = createStrangers(1, { now: () => now })
  const first = await strangers.attempt('192.0.2.1')
  assert.equal(first.refusal, undefined)
  first.settle(true)
  assert.equal((await strangers.attempt('192.0.2.1')).refusal?.code, 'RATE_LIMITED')
  now = 60_001
  assert.equal((await strangers.attempt('192.0.2.1')).refusal, undefined)
})

test('who still waits when the minute is over is judged by the next one', async () => {
  let now = 0
  const strangers = createStrangers(1, { now: () => now })
  const first = await strangers.attempt('192.0.2.1')
  const waiting = [strangers.attempt('192.0.2.1'), strangers.attempt('192.0.2.1')]
  now = 60_001
  first.settle(true)
  const second = await waiting[0]!
  assert.equal(second.refusal, undefined)
  second.settle(true)
  assert.equal((await waiting[1]!).refusal?.code, 'RATE_LIMITED')
})

/** So many look-ups begin at once from one address: how many are made, and how many are told to come back. */
async function atOnce(many: number, { limit, isServed }: { limit: number; isServed: boolean }) {
  const gate = createGate({ log: createLog({}, 'error'), strangers: createStrangers(limit) })
  const shown = { as: 'caller', address: '192.0.2.1', requestId: 'x', isKnown: () => false }
  let lookUps = 0
  const find = async () => {
    lookUps++
    await setImmediate()
    if (!isServed) throw new Fault('UNAUTHENTICATED')
  }
  const ends = await Promise.allSettled(Array.from({ length: many }, () => gate.pass(shown, find)))
  const limited = ends.filter((end) => end.status === 'rejected' && (end.reason as Fault).code === 'RATE_LIMITED')
  return { lookUps, limited: limited.length }
}

test('a fleet behind one address that comes back at once is served, however low the limit', async () => {
  assert.deepEqual(await atOnce(500, { limit: 200, isServed: true }), { lookUps: 500, limited: 0 })
  assert.deepEqual(await atOnce(500, { limit: 1, isServed: true }), { lookUps: 500, limited: 0 })
})

test('of a burst of wrong credentials no more are looked up than the limit', async () => {
  assert.deepEqual(await atOnce(2000, { limit: 200, isServed: false }), { lookUps: 200, limited: 1800 })
})

test('who finds too many waiting already is told to come back in a second', async () => {
  const strangers = createStrangers(1)
  const first = await strangers.attempt('192.0.2.1')
  const waiting = Array.from({ length: 1000 }, () => strangers.attempt('192.0.2.1'))
  const { refusal } = await strangers.attempt('192.0.2.1')
  assert.deepEqual([refusal?.code, refusal?.detail?.['retryAfterMs']], ['RATE_LIMITED', 1000])
  assert.equal((await strangers.attempt('192.0.2.2')).refusal, undefined, 'another address')
  first.settle(true)
  const codes = new Set((await Promise.all(waiting)).map((attempt) => attempt.refusal?.code))
  assert.deepEqual([...codes], ['RATE_LIMITED'])
})

test('a line for each request has route and caller, and nothing that was sent', async () => {
  const { logged, url } = await serve({ accessLog: true })
  await ask('owner', '192.0.2.9')
  await ask('secret-guess', '192.0.2.9', `${CANCEL}?token=secret-query`)
  await fetch(`${url}/no/such/secret-path`)
  const lines = logged.filter(({ name }) => name === 'http.request')
  const facts = lines.map(({ method, route, status, address, bytes, ms }) => [
    method,
    route,
    status,
    address,
    typeof bytes,
    typeof ms,
  ])
  assert.deepEqual(facts, [
    ['POST', '/v1/runs/{run}/cancel', 503, '192.0.2.9', 'number', 'number'],
    ['POST', '/v1/runs/{run}/cancel', 401, '192.0.2.9', 'number', 'number'],
    ['GET', undefined, 404, '127.0.0.1', 'number', 'number'],
  ])
  assert.match(String(lines[0]!['actor']), /^key_/)
  assert.equal(lines[1]!['actor'], undefined)
  assert.ok(!JSON.stringify(lines).includes('secret'))
})

let c: TestCoordinator
before(async () => (c = await aCoordinatorOfItsOwn({ LIMIT_REFUSED_PER_MIN: 20 })))
after(() => c.stop())

test('a flood of keys that nobody has ends in 429, and who was known is served on', async () => {
  const list = (key: string) =>
    fetch(`${c.url}/v1/orgs/${c.org}/runs`, { headers: { authorization: `Bearer ${key}` } }).then(
      (answer) => answer.status,
    )
  assert.equal(await list(c.apiKey), 200)
  const statuses = await Promise.all(Array.from({ length: 60 }, () => list(mintSecret('wl_'))))
  assert.equal(statuses.filter((status) => status === 401).length, 20)
  assert.equal(statuses.filter((status) => status === 429).length, 40)
  assert.equal(await list(c.apiKey), 200)
  const token = `wlr_${randomBytes(16).toString('hex')}`
  const agent = { token, name: 'a', labels: [], slots: 1, version: '0', platform: 'linux-x64' }
  const publicKey = { kty: 'OKP', crv: 'Ed25519', x: randomBytes(32).toString('base64url') }
  const register = await fetch(`${c.url}/runner/v1/register`, {
    method: 'POST',
    headers: { 'content-type': 'application/json' },
    body: JSON.stringify({ ...agent, publicKey }),
  })
  assert.equal(register.status, 429, await register.text())
})
