import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { ApiError } from '@windlass/shared/ops/api-error.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { anAgent, keyPair, type TestAgent } from '../_kit/agent.ts'
import { entriesOf } from '../_kit/audit.ts'
import { aCoordinatorOfItsOwn, refusal, type TestCoordinator } from '../_kit/coordinator.ts'

let c: TestCoordinator
let other: TestCoordinator
let agent: TestAgent

before(async () => {
  c = await aCoordinatorOfItsOwn({ KEY_LIFE_MS: 40_000 })
  other = await c.another()
})
after(() => c.stop())

const poll = (by: string, at = c) => at.call(ops.runnerSurface.claims, { slots: 1, waitMs: 0 }, { apiKey: by })
const renewNow = (by: string, x: string, at = c) =>
  at.call(ops.runnerSurface.renew, { publicKey: { kty: 'OKP', crv: 'Ed25519', x } }, { apiKey: by })
/** The same when the keys of all agents are old enough for it. */
const renew = async (by: string, x: string) => {
  await c.db`update runners set key_changed_at = now() - interval '1 day'`
  return renewNow(by, x)
}
const serves = async (one: TestAgent, at = c) =>
  assert.deepEqual(await poll(await one.token(), at), { offers: [], variableSets: {} })
const isOut = async (one: TestAgent, at = c) =>
  assert.rejects(poll(await one.token({ expiresIn: '59 s' }), at), refusal('UNAUTHENTICATED'))

test('a key is replaced, and told when to be replaced next; the one before serves until the new one was used', async () => {
  agent = await anAgent(c)
  const { privateKey, x } = await keyPair()
  const next = agent.withKey(privateKey)
  await isOut(next)
  assert.deepEqual(await renew(await agent.token(), x), { runner: agent.id, renewAfterMs: 30_000 })
  // Its answer may have been lost.
  for (const at of [c, other]) await serves(agent, at)
  assert.equal((await renew(await agent.token({ expiresIn: '58 s' }), x)).runner, agent.id)
  await serves(next)
  await isOut(agent)
})

test('a key that was dropped is out at every coordinator, also where it was seen a moment ago', async () => {
  const one = await anAgent(c)
  const { privateKey, x } = await keyPair()
  const token = await one.token()
  await poll(token, other)
  await renew(token, x)
  await serves(one.withKey(privateKey), other)
  await assert.rejects(poll(token, other), refusal('UNAUTHENTICATED'))
})

test('whoever has only the key before the last cannot put one in the place of the last', async () => {
  const one = await anAgent(c)
  const [second, third, thief] = await Promise.all([keyPair(), keyPair(), keyPair()])
  await renew(await one.token(), second.x)
  const two = one.withKey(second.privateKey)
  await renew(await two.token(), third.x)
  await assert.rejects(renew(await one.token({ expiresIn: '57 s' }), thief.x), refusal('UNAUTHENTICATED'))
  await serves(two)
  await serves(one.withKey(third.privateKey))
  await isOut(two)
})

test('a new key that was lost with its answer does not lock its agent out: it makes another one', async () => {
  const one = await anAgent(c)
  const [lost, found] = await Promise.all([keyPair(), keyPair()])
  await renew(await one.token(), lost.x)
  await renew(await one.token({ expiresIn: '57 s' }), found.x)
  await serves(one)
  await serves(one.withKey(found.privateKey))
  await isOut(one.withKey(lost.privateKey))
})

test('what is no key is refused by name, and changes nothing', async () => {
  const one = await anAgent(c)
  await assert.rejects(renew(await one.token(), 'x'.repeat(42)), refusal('VALIDATION_FAILED', 'publicKey.x'))
  await serves(one)
})

test('each new key is in the audit log once, by its agent, with which key took over from which', async () => {
  const one = await anAgent(c)
  const [second, third] = await Promise.all([keyPair(), keyPair()])
  await renew(await one.token(), second.x)
  // Its answer was lost.
  await renew(await one.token({ expiresIn: '57 s' }), second.x)
  await renew(await one.withKey(second.privateKey).token(), third.x)
  const entries = await entriesOf(c, { target: one.id, action: ['runners.renewKey'] })
  const [last, first, ...more] = entries
  assert.deepEqual(more, [])
  assert.deepEqual(first?.actor, { kind: 'system', id: one.id, name: 'the agent itself' })
  assert.deepEqual([first.via, first.target.type, typeof first.target.name], ['runner', 'runner', 'string'])
  assert.ok(first.requestId)
  const prints = [first.before, first.after, last?.before, last?.after].map((facts) => facts?.['keyThumbprint'])
  assert.ok(prints.every((print) => typeof print === 'string'))
  assert.deepEqual([prints[1], new Set(prints).size], [prints[2], 3])
  assert.doesNotMatch(JSON.stringify(entries), new RegExp(`${second.x}|${third.x}`))
})

test('an agent that renews its key again and again is told when it may, and leaves no entries', async () => {
  const one = await anAgent(c)
  const [second, third] = await Promise.all([keyPair(), keyPair()])
  await renew(await one.token(), second.x)
  const two = one.withKey(second.privateKey)
  const [token, ...tokens] = await Promise.all([59, 58, 57, 56].map((s) => two.token({ expiresIn: `${s} s` })))
  for (const each of tokens)
    await assert.rejects(renewNow(each, third.x), (error: ApiError) => {
      assert.deepEqual([error.status, error.code], [429, 'RATE_LIMITED'])
      assert.match(error.message, /has had its key for .* once in 1\.5 s.*goes on to serve.*in \d/)
      const { scope, retryAfterMs } = error.detail as { scope: string; retryAfterMs: number }
      return scope === 'key' && retryAfterMs > 0 && retryAfterMs <= 1500
    })
  // The same key again is an answer that was lost, and none of these.
  assert.equal((await renewNow(token!, second.x)).runner, one.id)
  assert.equal((await entriesOf(c, { target: one.id, action: ['runners.renewKey'] })).length, 1)
  await serves(two)
})

test('a new key whose entry cannot be written is not taken', async () => {
  const one = await anAgent(c)
  const { privateKey, x } = await keyPair()
  await c.db`create function no_log() returns trigger language plpgsql as $$ begin raise 'the log is full'; end $$`
  await c.db`create trigger no_log before insert on audit_log for each row execute function no_log()`
  await assert.rejects(renew(await one.token(), x), refusal('INTERNAL'))
  await c.db`drop trigger no_log on audit_log`
  await isOut(one.withKey(privateKey))
  await serves(one)
})
