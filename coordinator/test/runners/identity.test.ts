import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { SignJWT } from 'jose'
import { newId } from '@windlass/shared/ids.ts'
import { openOp } from '@windlass/shared/ops/call.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { OTHER_KEY_REASON, REVOKED_REASON } from '@windlass/shared/wire/agent.ts'
import { createRunnerVerifier } from '../../runners/identity.ts'
import {
  aRunningAgent,
  anAgent,
  type TokenAsk,
  end,
  type Held,
  keyPair,
  returned,
  type TestAgent,
} from '../_kit/agent.ts'
import { anOrg, aCoordinator, aRun, rawCall, refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { untilPolled } from '../_kit/until.ts'
import { aWorkflow, type TestWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let workflow: TestWorkflow
let agent: TestAgent
const agents: TestAgent[] = []

before(async () => {
  c = await aCoordinator()
  workflow = await aWorkflow(c)
  agent = await anAgent(c)
})
after(async () => {
  for (const one of agents) one.close()
  await c.stop()
})

const poll = (apiKey: string) => c.call(ops.runnerSurface.claims, { slots: 1, waitMs: 0 }, { apiKey })
const seconds = (fromNow: number) => Math.floor(Date.now() / 1000) + fromNow

test('a token that the agent signed itself serves for what is for agents', async () => {
  assert.deepEqual(await poll(await agent.token()), { offers: [], variableSets: {} })
})

test('tokens that are forged, borrowed, old or meant for others are 401', async () => {
  const [stranger, other] = [await keyPair(), await anAgent(c)]
  const wrong: Record<string, TokenAsk> = {
    'signed with a key that nobody registered': { key: stranger.privateKey },
    "another runner's id with this one's key": { kid: other.id, sub: other.id },
    'one runner as issuer, another as subject': { sub: other.id },
    'no such runner': { kid: newId('rnr') },
    'no id at all': { kid: 'x' },
    'an id that no column takes': { kid: '\0' },
    expired: { issuedAt: seconds(-120), expiresIn: '60 s' },
    'older than any token may be': { issuedAt: seconds(-120), expiresIn: '1 hour' },
    'from the future': { issuedAt: seconds(120), expiresIn: '1 hour' },
    'for another audience': { aud: 'runner' },
  }
  for (const [what, unlike] of Object.entries(wrong)) {
    await assert.rejects(poll(await agent.token(unlike)), refusal('UNAUTHENTICATED'), what)
  }
  const encoded = (part: object) => Buffer.from(JSON.stringify(part)).toString('base64url')
  for (const kid of [true, 1, [agent.id], { toString: 1 }, null]) {
    const token = [{ alg: 'EdDSA', kid }, {}, {}].map(encoded).join('.')
    await assert.rejects(poll(token), refusal('UNAUTHENTICATED'), JSON.stringify(kid))
  }
  const unsigned = [
    { alg: 'none', kid: agent.id },
    { sub: agent.id, aud: 'windlass-agent', exp: seconds(60), iat: seconds(0) },
  ]
    .map(encoded)
    .join('.')
  for (const token of [`${unsigned}.`, 'x', 'a.b.c', c.apiKey, `${await agent.token()}x`]) {
    await assert.rejects(poll(token), refusal('UNAUTHENTICATED'), token)
  }
})

test('a token whose signature uses the public key as a shared secret is 401', async () => {
  const [row] = await c.db<[{ publicKey: { x: string } }]>`select public_key from runners where id = ${agent.id}`
  const token = await new SignJWT({})
    .setProtectedHeader({ alg: 'HS256', kid: agent.id })
    .setSubject(agent.id)
    .setAudience('windlass-agent')
    .setIssuedAt()
    .setExpirationTime('60 s')
    .sign(Buffer.from(row.publicKey.x, 'base64url'))
  await assert.rejects(poll(token), refusal('UNAUTHENTICATED'))
})

test('a token serves no longer than 70 s and the tolerance, whatever it says and however often it was seen', async () => {
  const verifier = createRunnerVerifier(c.db)
  const token = await agent.token({ issuedAt: seconds(-97), expiresIn: '10 hours' })
  assert.equal((await verifier.verify(token)).id, agent.id)
  const refused = () =>
    verifier.verify(token).then(
      () => undefined,
      (error: Error) => error,
    )
  const error = await untilPolled('the token to be too old', refused)
  assert.ok(refusal('UNAUTHENTICATED')(error))
})

test('wrong signatures for the id of a runner cost no query each, and make nobody known', async (t) => {
  const queries = t.mock.fn((...ask: Parameters<typeof c.db>) => c.db(...ask))
  const verifier = createRunnerVerifier(queries as unknown as typeof c.db)
  const one = await anAgent(c)
  const [stranger, next] = [await keyPair(), await keyPair()]
  const served = await one.token()
  await verifier.verify(served)
  assert.ok(verifier.knows(await one.token({ expiresIn: '58 s' })), 'a new token of a runner that is known')
  const forged = await Promise.all(
    Array.from({ length: 200 }, (_, n) => one.token({ key: stranger.privateKey, expiresIn: `${n + 1} s` })),
  )
  const before = queries.mock.callCount()
  const began = performance.now()
  for (const at of [0, 100]) {
    const ends = await Promise.allSettled(forged.slice(at, at + 100).map((token) => verifier.verify(token)))
    assert.ok(ends.every((end) => end.status === 'rejected' && refusal('UNAUTHENTICATED')(end.reason)))
  }
  // Once at first, once a second after that; each for the signature and for what is kept.
  const most = 4 + 2 * Math.ceil((performance.now() - began) / 1000)
  const made = queries.mock.callCount() - before
  assert.ok(made <= most, `${made} queries, and ${most} are enough`)
  assert.ok(!verifier.knows(forged[0]!))
  assert.ok(verifier.knows(served))

  // It made itself a new key elsewhere in the middle of that.
  const publicKey = { kty: 'OKP', crv: 'Ed25519', x: next.x }
  await c.db`update runners set key_changed_at = now() - interval '1 day' where id = ${one.id}`
  await c.call(ops.runnerSurface.renew, { publicKey } as never, { apiKey: await one.token() })
  const renewed = one.withKey(next.privateKey)
  let last: unknown
  const servedAgain = async () => verifier.verify(await renewed.token()).catch((error: unknown) => void (last = error))
  const found = await untilPolled('the new key to serve', servedAgain, { more: () => String(last) })
  assert.equal(found.id, one.id)
})

test('a revoked runner is refused, by the socket too', async () => {
  const revoked = await anAgent(c)
  await c.db`update runner_intake set state = 'revoked' where runner_id = ${revoked.id}`
  await assert.rejects(poll(await revoked.token()), refusal('UNAUTHENTICATED'))
  await assert.rejects(revoked.dial(), /refuses the socket/)
})

test('who signs as a runner that was revoked or forgotten hears that, and nobody else', async () => {
  const gone = await anAgent(c)
  const stranger = await keyPair()
  const reasonFor = async (token: string) => {
    const answer = await rawCall({ url: c.url, apiKey: token }, 'POST', '/runner/v1/claims', '{"slots":1,"waitMs":0}')
    const { error } = (await answer.json()) as { error: { detail?: { reason?: string } } }
    return [answer.status, error.detail?.reason]
  }
  for (const shutOut of [
    () => c.call(ops.runners.revoke, { runner: gone.id }),
    () => c.call(ops.runners.deregister, { runner: gone.id }),
  ]) {
    await shutOut()
    assert.deepEqual(await reasonFor(await gone.token()), [401, REVOKED_REASON])
    assert.deepEqual(await reasonFor(await gone.token({ key: stranger.privateKey })), [401, OTHER_KEY_REASON])
  }
})

test("a bundle comes whole to agents of its org, and looks absent to another org's", async () => {
  const strangers = await anOrg(c)
  const { runnerPools } = await c.call(ops.pools.list, { org: strangers.slug }, strangers)
  const { registrationToken } = await c.call(ops.pools.createToken, { pool: runnerPools[0]!.id }, strangers)
  const theirs = await aStranger(registrationToken.token)
  const fetchBundle = async (token: string, digest: string) =>
    (await openOp({ url: c.url, apiKey: token }, ops.runnerSurface.bundle, { digest })).text()
  assert.equal(await fetchBundle(await agent.token(), workflow.digest), `bundle of ${workflow.slug} 1`)
  await assert.rejects(fetchBundle(theirs, workflow.digest), refusal('NOT_FOUND'))
  await assert.rejects(fetchBundle(await agent.token(), 'ab'.repeat(32)), refusal('NOT_FOUND'))
  await assert.rejects(fetchBundle(await agent.token(), '../../etc/passwd'), refusal('NOT_FOUND'))
})

/** The bearer of an agent that joined with this token. */
async function aStranger(token: string): Promise<string> {
  const { privateKey, x } = await keyPair()
  const publicKey = { kty: 'OKP', crv: 'Ed25519', x } as const
  const joined = await c.call(ops.runnerSurface.register, {
    token,
    name: 'stranger',
    publicKey,
    slots: 1,
    version: '1',
    platform: 'linux',
  })
  return agent.token({ kid: joined.runner, sub: joined.runner, key: privateKey })
}

async function running(): Promise<Held> {
  await aRun(c, { workflow: workflow.slug })
  const held = await aRunningAgent(c)
  agents.push(held.agent)
  return held
}

const selfOf = (run: string, token: string) => c.call(ops.runnerSurface.self, { run }, { apiKey: token })

test('the token of a run shows the run itself, and no other', async () => {
  const { offer } = await running()
  const { run } = await selfOf(offer.run, offer.token)
  assert.deepEqual(run, { id: offer.run, status: 'running', attempt: 1, epoch: 1 })
  const other = await running()
  await assert.rejects(selfOf(other.offer.run, offer.token), refusal('NOT_FOUND'))
  await assert.rejects(selfOf(newId('run'), offer.token), refusal('NOT_FOUND'))
})

test('the token of a run is dead once the run has ended, and after it was given to another process', async () => {
  const done = await running()
  await done.link.report(done.offer, 2, end(returned(1)))
  await assert.rejects(selfOf(done.offer.run, done.offer.token), refusal('STALE_PLACEMENT'))

  const { offer, link } = await running()
  await link.report(offer, 2, end({ how: 'killed', signal: 'SIGKILL' }))
  await assert.rejects(selfOf(offer.run, offer.token), refusal('STALE_PLACEMENT'))
  const [again] = await agent.poll()
  assert.equal(again?.run, offer.run)
  await assert.rejects(selfOf(offer.run, offer.token), refusal('STALE_PLACEMENT'))
  assert.equal((await selfOf(offer.run, again.token)).run.epoch, 2)
})

test('each operation takes its own kind of credential and no other', async () => {
  const { offer } = await running()
  const agentToken = await agent.token()
  for (const token of [agentToken, c.apiKey, `${offer.token}x`, 'x']) {
    await assert.rejects(selfOf(offer.run, token), refusal('UNAUTHENTICATED'))
  }
  await assert.rejects(poll(offer.token), refusal('UNAUTHENTICATED'))
  for (const apiKey of [offer.token, agentToken]) {
    await assert.rejects(c.call(ops.runs.get, { run: offer.run }, { apiKey }), refusal('UNAUTHENTICATED'))
  }
})
