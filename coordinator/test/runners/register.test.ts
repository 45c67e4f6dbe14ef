import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { after, before, test } from 'node:test'
import { mintSecret } from '@windlass/shared/api-key.ts'
import { newId } from '@windlass/shared/ids.ts'
import { onMoment } from '@windlass/shared/probe.ts'
import { callOp } from '@windlass/shared/ops/call.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { ArgsOf } from '@windlass/shared/ops/op.ts'
import { countedDb } from '../_kit/counted-db.ts'
import { deleteDeadTokens } from '../../runners/store.ts'
import { keyPair, registration } from '../_kit/agent.ts'
import { entriesOf } from '../_kit/audit.ts'
import { countBlocked, untilBlocked } from '../_kit/blocked.ts'
import { anOrg, aCoordinatorOfItsOwn, refusal, type TestCoordinator } from '../_kit/coordinator.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn()
})
after(() => c.stop())

type TokenAsk = Omit<ArgsOf<typeof ops.pools.createToken>, 'pool'>

const mint = async (ask: TokenAsk = {}) =>
  (await c.call(ops.pools.createToken, { pool: c.poolId, ...ask })).registrationToken

/** As another machine each time. */
async function register(token: string, over: Partial<ReturnType<typeof registration>> = {}) {
  const { x } = await keyPair()
  return callOp({ url: c.url }, ops.runnerSurface.register, { ...registration(token, x), ...over })
}

test('a token makes a runner of an agent once, and tells it where it is', async () => {
  const { token, uses, expiresAt } = await mint()
  assert.match(token, /^wlr_/)
  assert.equal(uses, 1)
  assert.ok(Math.abs(expiresAt - Date.now() - 900_000) < 60_000)
  const answer = await register(token, { name: 'first', labels: ['gpu'], slots: 3 })
  assert.deepEqual([answer.org, answer.pool], [c.org, 'default'])
  assert.equal(answer.settings.heartbeatMs, c.deps.config.heartbeatMs)
  const { runner } = await c.call(ops.runners.get, { runner: answer.runner })
  assert.deepEqual([runner.name, runner.labels, runner.slots, runner.status], ['first', ['gpu'], 3, 'offline'])
  assert.deepEqual(
    [runner.pool, runner.lastPollAt, runner.lastHeartbeatAt],
    [{ id: c.poolId, name: 'default' }, null, null],
  )
  await assert.rejects(register(token), refusal('REGISTRATION_TOKEN_USED', 'token'))
})

test('of ten agents with one token, one gets in', async () => {
  const { token } = await mint()
  const settled = await Promise.allSettled(Array.from({ length: 10 }, () => register(token)))
  assert.equal(settled.filter(({ status }) => status === 'fulfilled').length, 1)
  for (const one of settled) if (one.status === 'rejected') refusal('REGISTRATION_TOKEN_USED')(one.reason as Error)
})

test('a fleet with one token holds one connection while its token is locked, and comes in afterwards', async () => {
  const { token } = await mint({ reusable: true, uses: 20 })
  const other = await anOrg(c)
  const fleet: Promise<unknown>[] = []
  await c.db.begin(async (tx) => {
    await tx`select from registration_tokens where hash = ${createHash('sha256').update(token).digest()} for update`
    fleet.push(...Array.from({ length: 20 }, () => register(token)))
    await untilBlocked(c.db, '%registration_tokens%')
    const minted = await c.call(ops.pools.createToken, { pool: other.poolId }, { apiKey: other.apiKey })
    assert.equal((await register(minted.registrationToken.token)).org, other.slug)
    assert.equal(await countBlocked(c.db, '%registration_tokens%'), 1)
  })
  await Promise.all(fleet)
  await assert.rejects(register(token), refusal('REGISTRATION_TOKEN_USED', 'token'))
})

test('invented tokens are looked for by few statements, and share them with a valid one', async () => {
  const { token } = await mint()
  let statements = 0
  const stop = onMoment(({ name, facts }) => {
    if (name === 'group.committed' && facts.name === 'read registration tokens') statements++
  })
  const hashOf = (text: string) => createHash('sha256').update(text).digest()
  const asked = [...Array.from({ length: 50 }, () => mintSecret('wlr_')), token]
  const found = await Promise.all(
    asked.map((text, n) => c.deps.tokenReads.add({ hash: hashOf(text), network: `${n}` })),
  )
  stop()
  assert.deepEqual(
    found.flatMap((row, n) => (row === undefined ? [] : [[n, row.orgId]])),
    [[50, c.orgId]],
  )
  assert.equal(statements, 3)
})

test('an org has 20,000 runners at most, of which those that were deregistered are none', async () => {
  const { slug, apiKey, poolId } = await anOrg(c)
  const mine = { apiKey }
  await c.db`
    insert into runners (id, org_id, pool_id, name, public_key, slots, version, platform)
    select 'rnr_' || lpad(n::text, 26, '0'), p.org_id, p.id, 'gone', '{}', 1, '0.1.0', 'linux-x64'
    from runner_pools p
    cross join generate_series(1, 20000) n
    where p.id = ${poolId}`
  const { registrationToken } = await c.call(ops.pools.createToken, { pool: poolId }, mine)
  await assert.rejects(register(registrationToken.token), (error: Error) => {
    assert.match(error.message, /^The org may have 20000 runners\. Deregister those that are gone: /)
    return refusal('CONFLICT')(error)
  })
  await c.db`update runners set deregistered_at = now() where id = ${`rnr_${'1'.padStart(26, '0')}`}`
  // It was not spent.
  assert.equal((await register(registrationToken.token)).org, slug)
})

test('a reusable token for which nobody says how often serves a hundred times', async () => {
  assert.equal((await mint({ reusable: true })).uses, 100)
  assert.equal((await mint({ reusable: true, uses: 1 })).uses, 1)
  await assert.rejects(mint({ uses: 2 }), refusal('VALIDATION_FAILED', 'uses'))
})

test('a reusable token serves as often as it says', async () => {
  const { token, uses } = await mint({ reusable: true, uses: 3 })
  assert.equal(uses, 3)
  const runners = new Set<string>()
  for (let i = 0; i < 3; i++) runners.add((await register(token)).runner)
  assert.equal(runners.size, 3)
  await assert.rejects(register(token), refusal('REGISTRATION_TOKEN_USED'))
  await assert.rejects(mint({ uses: 2 }), refusal('VALIDATION_FAILED', 'uses'))
})

test('a token that is unknown, malformed or expired is 401', async () => {
  for (const token of [mintSecret('wlr_'), 'x', c.apiKey])
    await assert.rejects(register(token), refusal('UNAUTHENTICATED', 'token'))
  const { token } = await mint()
  await c.db`update registration_tokens set expires_at = now() where uses_left = 1`
  await assert.rejects(register(token), refusal('UNAUTHENTICATED', 'token'))
})

test('a token is kept as its hash only, and goes a day after it has expired', async () => {
  const { token } = await mint()
  const rows = await c.db`select * from registration_tokens`
  assert.ok(rows.length > 0)
  assert.ok(!JSON.stringify(rows).includes(token))
  await c.db`update registration_tokens set expires_at = now() - interval '25 hours'`
  const { token: young } = await mint()
  assert.ok((await deleteDeadTokens(c.db)) > 0)
  assert.equal((await c.db`select 1 from registration_tokens`).length, 1)
  await register(young)
})

test('very many dead tokens go in portions', async () => {
  const { token: young } = await mint()
  await c.db`
    insert into registration_tokens (id, pool_id, hash, uses_left, created_by, expires_at)
    select 'rtk_' || lpad(n::text, 26, '0'), t.pool_id, sha256(n::text::bytea), 1, t.created_by,
           now() - interval '2 days'
    from generate_series(1, 12_000) n
    join registration_tokens t on t.id = (select max(id) from registration_tokens)`
  const counted = countedDb(c.db)
  assert.equal(await deleteDeadTokens(counted.db), 12_000)
  assert.ok(counted.looks() >= 3, `${counted.looks()} statements`)
  await register(young)
})

const runnersBy = async (token: string) =>
  c.db`
    select r.id from runners r
    join registration_tokens t on t.id = r.registered_by
    where t.hash = ${createHash('sha256').update(token).digest()}`

test('who asks again with the same token and key, as the answer was lost, gets the same runner', async () => {
  for (const ask of [{}, { reusable: true, uses: 5 }]) {
    const { token, uses } = await mint(ask)
    const { publicKey } = registration(token, (await keyPair()).x)
    const answers = await Promise.all(Array.from({ length: 5 }, () => register(token, { publicKey })))
    const again = await register(token, { publicKey, name: 'renamed meanwhile' })
    assert.deepEqual(
      answers.map(({ runner }) => runner),
      answers.map(() => again.runner),
    )
    assert.deepEqual({ ...again, runner: 0 }, { ...answers[0], runner: 0 })
    assert.equal((await runnersBy(token)).length, 1)
    const [{ usesLeft }] = await c.db<[{ usesLeft: number }]>`
      select uses_left from registration_tokens where hash = ${createHash('sha256').update(token).digest()}`
    assert.equal(usesLeft, uses - 1)
    assert.equal((await entriesOf(c, { target: again.runner, action: ['runners.register'] })).length, 1)
  }
})

test('nobody else gets that answer: not by another key, nor another token, nor after it has expired', async () => {
  const { token } = await mint()
  const { publicKey } = registration(token, (await keyPair()).x)
  const { runner } = await register(token, { publicKey })
  await assert.rejects(register(token), refusal('REGISTRATION_TOKEN_USED', 'token'))
  const other = await mint()
  assert.notEqual((await register(other.token, { publicKey })).runner, runner)
  await assert.rejects(register(mintSecret('wlr_'), { publicKey }), refusal('UNAUTHENTICATED', 'token'))
  await c.db`update registration_tokens set expires_at = now() where uses_left = 0`
  await assert.rejects(register(token, { publicKey }), refusal('UNAUTHENTICATED', 'token'))
})

test('a runner that has connected or was deregistered is given to nobody again', async () => {
  for (const change of ['last_heartbeat_at', 'deregistered_at']) {
    const [once, twice] = [await mint(), await mint({ reusable: true, uses: 2 })]
    const { publicKey } = registration(once.token, (await keyPair()).x)
    const first = await register(once.token, { publicKey })
    const second = await register(twice.token, { publicKey })
    await c.db`update runners set ${c.db(change)} = now() where id in (${first.runner}, ${second.runner})`
    await assert.rejects(register(once.token, { publicKey }), refusal('REGISTRATION_TOKEN_USED', 'token'))
    assert.notEqual((await register(twice.token, { publicKey })).runner, second.runner)
  }
})

test('what an agent says of itself is held to its form, and a refusal spends no token', async () => {
  const { token } = await mint()
  const { x } = await keyPair()
  const wrong: [Record<string, unknown>, string][] = [
    [{ name: '' }, 'name'],
    [{ slots: 0 }, 'slots'],
    [{ slots: 1025 }, 'slots'],
    [{ labels: [''] }, 'labels[0]'],
    [{ publicKey: { kty: 'RSA', crv: 'Ed25519', x } }, 'publicKey.kty'],
    [{ publicKey: { kty: 'OKP', crv: 'Ed25519', x: 'short' } }, 'publicKey.x'],
    [{ publicKey: { kty: 'OKP', crv: 'Ed25519', x: '!'.repeat(43) } }, 'publicKey.x'],
    [{ publicKey: { kty: 'OKP', crv: 'Ed25519', x: `${'A'.repeat(42)}\ud800` } }, 'publicKey.x'],
    [{ publicKey: { kty: 'OKP', crv: 'Ed25519', x, d: 'secret' } }, 'publicKey.d'],
    [{ name: 'a\u0000' }, 'name'],
  ]
  for (const [over, path] of wrong)
    await assert.rejects(register(token, over), refusal('VALIDATION_FAILED', path), JSON.stringify(over))
  await register(token)
})

test("another org's pool and an unknown one look absent", async () => {
  const { apiKey } = await anOrg(c)
  await assert.rejects(c.call(ops.pools.createToken, { pool: c.poolId }, { apiKey }), refusal('NOT_FOUND'))
  await assert.rejects(c.call(ops.pools.createToken, { pool: newId('pool') }), refusal('NOT_FOUND'))
})
