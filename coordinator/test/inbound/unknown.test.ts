import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { newId } from '@windlass/shared/ids.ts'
import { createSourceGate } from '../../limits/source-gate.ts'
import { createStrangers } from '../../limits/strangers.ts'
import { aCoordinatorOfItsOwn, refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { aSession } from '../_kit/credentials.ts'
import { aKeyText } from '../_kit/environments.ts'
import { aHook, deliver } from '../_kit/inbound.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const LIMIT = 5
const SOURCE = { orgId: 'ours' }
let c: TestCoordinator
before(async () => {
  c = await aCoordinatorOfItsOwn({ SECRET_KEY: aKeyText(), LIMIT_REFUSED_PER_MIN: LIMIT })
})
after(() => c.stop())

test('an address with too many unknown ids is told to wait, and known ones are not held up by it', async () => {
  const session = await aSession(c.db, { orgId: c.orgId })
  const { slug } = await aWorkflow(c)
  const hook = await aHook(c, session, slug)
  assert.equal((await deliver(hook, { body: '{"n":1}' })).status, 200)
  const unknown = () => deliver({ ...hook, url: `${c.url}/v1/hooks/${newId('hook')}` })
  const statuses = []
  for (let n = 0; n < LIMIT + 2; n++) statuses.push((await unknown()).status)
  assert.deepEqual(statuses, [...Array.from({ length: LIMIT }, () => 404), 429, 429])
  const late = await unknown()
  assert.equal(late.error.code, 'RATE_LIMITED')
  assert.ok(Number(late.headers.get('retry-after')) > 0)
  const probe = await fetch(`${c.url}/v1/inbound/${newId('conn')}`, { method: 'OPTIONS' })
  assert.equal(probe.status, 429)
  assert.equal((await deliver(hook, { body: '{"n":2}' })).status, 200)
})

test('what is over the limit is not looked up; an id that is gone counts again', async () => {
  const gate = createSourceGate(createStrangers(2))
  const address = '192.0.2.1'
  let lookUps = 0
  const find = (there: boolean) => async () => {
    lookUps++
    return there ? SOURCE : undefined
  }
  const pass = (id: string, there: boolean) => gate.pass({ id, address, what: 'secrets' }, find(there))
  await pass('known', true)
  for (const id of ['a', 'b']) await assert.rejects(pass(id, false), refusal('NOT_FOUND'))
  await assert.rejects(pass('c', false), refusal('RATE_LIMITED'))
  assert.equal(lookUps, 3)
  assert.equal(await pass('known', true), SOURCE)
  await assert.rejects(pass('known', false), refusal('NOT_FOUND'))
  await assert.rejects(pass('known', true), refusal('RATE_LIMITED'))
})

/** Look-ups that end when they are told to; each has its id, in the order in which they begin. */
function lookUps() {
  const gate = createSourceGate(createStrangers(0))
  const begun: { id: string; end: (orgId: string | undefined) => void }[] = []
  const ask = (id: string, what: 'source' | 'secrets' = 'secrets') =>
    gate.pass({ id, address: '192.0.2.1', what }, async () => {
      const { promise, resolve } = Promise.withResolvers<string | undefined>()
      begun.push({ id, end: resolve })
      const orgId = await promise
      return orgId === undefined ? undefined : { orgId }
    })
  const ids = async () => (await turn(), begun.map(({ id }) => id).join(''))
  return { ask, ids, end: (n: number, orgId?: string) => begun[n]!.end(orgId) }
}

test('deliveries that wait for a look-up share it, and it begins after all of them have come', async () => {
  const { ask, ids, end } = lookUps()
  const first = ask('x')
  assert.equal(await ids(), 'x')
  const others = Array.from({ length: 1000 }, () => ask('x'))
  const probed = ask('x', 'source')
  assert.equal(await ids(), 'xx', 'only the one who asks for something else')
  end(0, 'ours')
  assert.deepEqual(await first, { orgId: 'ours' })
  assert.equal(await ids(), 'xxx')
  // It was deleted after the first look-up had begun.
  end(2)
  for (const other of others) await assert.rejects(other, refusal('NOT_FOUND'))
  end(1, 'ours')
  await probed
  assert.equal(await ids(), 'xxx')
})

test('ids of one org are looked up two at once, and those of others need not wait for it', async () => {
  const { ask, ids, end } = lookUps()
  const known = async (id: string, orgId: string) => {
    const asked = ask(id)
    const all = await ids()
    end(all.length - 1, orgId)
    await asked
  }
  for (const id of ['a', 'b', 'c']) await known(id, 'many')
  await known('d', 'few')
  const all = ['a', 'b', 'c', 'd'].map((id) => ask(id))
  assert.equal((await ids()).slice(4), 'abd')
  end(4, 'many')
  assert.equal((await ids()).slice(4), 'abdc')
  for (const n of [5, 7]) end(n, 'many')
  end(6, 'few')
  await Promise.all(all)
})
