import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { newId } from '@windlass/shared/ids.ts'
import { onMoment } from '@windlass/shared/probe.ts'
import { createSourceOwners } from '../../inbound/owners.ts'
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
  const there = new Set(['known'])
  let asked = 0
  const owners = {
    async add({ id }: { id: string }) {
      asked++
      return there.has(id) ? SOURCE.orgId : undefined
    },
  }
  const gate = createSourceGate(createStrangers(2), owners)
  const find = (id: string) => async () => (there.has(id) ? SOURCE : undefined)
  const pass = (id: string) => gate.pass({ id, address: '192.0.2.1', what: 'secrets' }, find(id))
  await pass('known')
  for (const id of ['a', 'b']) await assert.rejects(pass(id), refusal('NOT_FOUND'))
  await assert.rejects(pass('c'), refusal('RATE_LIMITED'))
  assert.equal(asked, 3)
  assert.equal(await pass('known'), SOURCE)
  there.delete('known')
  await assert.rejects(pass('known'), refusal('NOT_FOUND'))
  await assert.rejects(pass('known'), refusal('RATE_LIMITED'))
})

/** Look-ups that end when they are told to; each has its id, in the order in which they begin. */
function lookUps(ownerOf: (id: string) => string | Promise<undefined> = () => 'ours') {
  const gate = createSourceGate(createStrangers(0), { add: async ({ id }) => ownerOf(id) })
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
  const first = [ask('x')]
  assert.equal(await ids(), 'x')
  first.push(ask('x'))
  assert.equal(await ids(), 'xx')
  const others = Array.from({ length: 1000 }, () => ask('x'))
  assert.equal(await ids(), 'xx')
  end(0, 'ours')
  assert.equal(await ids(), 'xxx')
  const probed = ask('x', 'source')
  end(1, 'ours')
  assert.deepEqual(await Promise.all(first), [{ orgId: 'ours' }, { orgId: 'ours' }])
  assert.equal(await ids(), 'xxxx', 'the one who asks for something else')
  // It was deleted after the first look-ups had begun.
  end(2)
  for (const other of others) await assert.rejects(other, refusal('NOT_FOUND'))
  end(3, 'ours')
  await probed
  assert.equal(await ids(), 'xxxx')
})

test('ids of one org are looked up two at once, and those of others need not wait for it', async () => {
  const { ask, ids, end } = lookUps((id) => (id === 'd' ? 'few' : 'many'))
  const all = ['a', 'b', 'c', 'd'].map((id) => ask(id))
  assert.equal(await ids(), 'abd')
  end(0, 'many')
  assert.equal(await ids(), 'abdc')
  for (const n of [1, 3]) end(n, 'many')
  end(2, 'few')
  await Promise.all(all)
})

test('a thousand ids that nobody has keep no seat from one that has an owner', async () => {
  const owner = Promise.withResolvers<undefined>()
  const { ask, ids, end } = lookUps((id) => (id === 'x' ? 'ours' : owner.promise))
  const invented = Array.from({ length: 1000 }, (_, n) => assert.rejects(ask(`hook_${n}`), refusal('NOT_FOUND')))
  const ours = ask('x')
  assert.equal(await ids(), 'x')
  end(0, 'ours')
  assert.deepEqual(await ours, { orgId: 'ours' })
  owner.resolve(undefined)
  await Promise.all(invented)
  assert.equal(await ids(), 'x')
})

test('ids that many ask for at once are looked for by few statements', async () => {
  const owned = await aHook(c, await aSession(c.db, { orgId: c.orgId }), (await aWorkflow(c)).slug)
  const id = owned.url.split('/').at(-1)!
  const owners = createSourceOwners(c.deps)
  const invented = Array.from({ length: 50 }, () => newId('hook'))
  let statements = 0
  const stop = onMoment(({ name, facts }) => {
    if (name === 'group.committed' && facts.name === 'read owners of sources') statements++
  })
  const asked = [...invented, id, newId('conn')].map((each, n) => owners.add({ id: each, network: `${n}` }))
  const found = await Promise.all(asked)
  stop()
  assert.deepEqual(
    found.flatMap((orgId, n) => (orgId === undefined ? [] : [[n, orgId]])),
    [[50, c.orgId]],
  )
  assert.equal(statements, 3)
})
