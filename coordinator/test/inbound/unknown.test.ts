import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { createSourceGate } from '../../limits/source-gate.ts'
import { createStrangers } from '../../limits/strangers.ts'
import { aCoordinatorOfItsOwn, refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { aSession } from '../_kit/credentials.ts'
import { aKeyText } from '../_kit/environments.ts'
import { aHook, deliver } from '../_kit/inbound.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const LIMIT = 5
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
    return there ? 'source' : undefined
  }
  const pass = (id: string, there: boolean) => gate.pass({ id, address }, find(there))
  await pass('known', true)
  for (const id of ['a', 'b']) await assert.rejects(pass(id, false), refusal('NOT_FOUND'))
  await assert.rejects(pass('c', false), refusal('RATE_LIMITED'))
  assert.equal(lookUps, 3)
  assert.equal(await pass('known', true), 'source')
  await assert.rejects(pass('known', false), refusal('NOT_FOUND'))
  await assert.rejects(pass('known', true), refusal('RATE_LIMITED'))
})
