import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { entriesOf } from '../_kit/audit.ts'
import {
  aCoordinatorOfItsOwn,
  anOrg,
  rawCall,
  refusal,
  type TestCoordinator,
  type TestOrg,
} from '../_kit/coordinator.ts'
import { aKey, aSession } from '../_kit/credentials.ts'
import { aKeyText, anEnvironment } from '../_kit/environments.ts'

let c: TestCoordinator
let session: string

before(async () => {
  c = await aCoordinatorOfItsOwn({ SECRET_KEY: aKeyText() })
  session = await aSession(c.db, { orgId: c.orgId })
  await anEnvironment(c, 'staging')
})
after(() => c.stop())

const set = (name: string, value: string, environment?: string) =>
  c.call(ops.variables.set, { org: c.org, name, value, environment })
const drop = (name: string, environment?: string) => c.call(ops.variables.delete, { org: c.org, name, environment })
const setSecret = (name: string, value: string, environment?: string) =>
  c.call(ops.secrets.set, { org: c.org, name, value, environment }, { apiKey: session })
const list = async (org: TestOrg, environment?: string) =>
  (await c.call(ops.variables.list, { org: org.slug, environment, limit: 100 }, { apiKey: org.apiKey })).variables

test('variables of the org and of an environment stand apart', async () => {
  const { variable } = await set('PLACE', 'org')
  assert.deepEqual([variable.name, variable.value, variable.environment], ['PLACE', 'org', null])
  assert.match(variable.updatedBy, /^key_/)
  await set('PLACE', 'staging', 'staging')
  const own = await c.call(ops.variables.list, { org: c.org, environment: 'staging' })
  assert.deepEqual(
    own.variables.map(({ value, environment }) => [value, environment]),
    [['staging', 'staging']],
  )
  await drop('PLACE', 'staging')
  await assert.rejects(drop('PLACE', 'staging'), refusal('NOT_FOUND'))
  await drop('PLACE')
})

test('variables are listed page by page in the order of their names', async () => {
  const org = await anOrg(c)
  const { apiKey, slug } = org
  for (const name of ['B', 'a', 'A', '_C'])
    await c.call(ops.variables.set, { org: slug, name, value: name }, { apiKey })
  const first = await c.call(ops.variables.list, { org: slug, limit: 3 }, { apiKey })
  assert.deepEqual(
    first.variables.map(({ name }) => name),
    ['A', 'B', '_C'],
  )
  const second = await c.call(ops.variables.list, { org: slug, limit: 3, cursor: first.nextCursor! }, { apiKey })
  assert.deepEqual([second.variables.map(({ name }) => name), second.nextCursor], [['a'], null])
})

test('on one level a name is a variable or a secret, never both', async () => {
  await set('ONE_OF_TWO', 'open')
  await assert.rejects(
    setSecret('ONE_OF_TWO', 'closed'),
    (error: Error & { detail?: { kind?: string; path?: string } }) => {
      assert.equal(error.detail?.kind, 'variable')
      assert.match(error.message, /`windlass vars delete ONE_OF_TWO`/)
      return refusal('CONFLICT', 'name')(error)
    },
  )
  // Another level is another matter.
  await setSecret('ONE_OF_TWO', 'closed', 'staging')
  await assert.rejects(
    set('ONE_OF_TWO', 'open', 'staging'),
    /`windlass secrets delete ONE_OF_TWO --environment staging`/,
  )
  await assert.rejects(drop('ONE_OF_TWO', 'staging'), refusal('NOT_FOUND'))
  await assert.rejects(
    c.call(ops.secrets.delete, { org: c.org, name: 'ONE_OF_TWO' }, { apiKey: session }),
    refusal('NOT_FOUND'),
  )
})

test('each change of a variable is in the audit log, and no value ever', async () => {
  await set('LOGGED', 'hunter2', 'staging')
  await set('LOGGED', 'hunter2 and more', 'staging')
  await set('LOGGED', 'hunter2 and more', 'staging')
  await drop('LOGGED', 'staging')
  const entries = await entriesOf(c, { target: 'staging/LOGGED' })
  const recorded = (facts: Record<string, unknown> | null) => facts && [facts['characters'], facts['isChanged']]
  assert.deepEqual(
    entries.map(({ action, before, after }) => [action, recorded(before), recorded(after)]),
    [
      ['variables.delete', [16, undefined], null],
      ['variables.set', [16, undefined], [16, false]],
      ['variables.set', [7, undefined], [16, true]],
      ['variables.set', null, [7, true]],
    ],
  )
  assert.doesNotMatch(JSON.stringify(entries), /hunter2/)
})

test('names that the runtime needs, and what no environment variable can hold, are refused by their field', async () => {
  for (const name of ['PATH', 'node_options', 'WINDLASS_URL', 'LD_PRELOAD', '1A', 'A-B', 'A=B', 'A\0', 'Ä']) {
    await assert.rejects(set(name, 'x'), refusal('VALIDATION_FAILED', 'name'), name)
    await assert.rejects(setSecret(name, 'x'), refusal('VALIDATION_FAILED', 'name'), name)
  }
  for (const value of ['a\0b', '\ud800', 'x'.repeat(65_537), '😀'.repeat(16_385)]) {
    await assert.rejects(set('FINE', value), refusal('VALIDATION_FAILED', 'value'))
    await assert.rejects(setSecret('FINE', value), refusal('VALIDATION_FAILED', 'value'))
  }
  const raw = await rawCall({ ...c, apiKey: session }, 'PUT', `/v1/orgs/${c.org}/secrets/__proto__`, '{"value":"x"}')
  assert.equal(raw.status, 400)
})

test('the environment rides in the query, and nowhere else', async () => {
  const { status } = await rawCall(c, 'PUT', `/v1/orgs/${c.org}/variables/A`, '{"value":"1","environment":"staging"}')
  assert.equal(status, 400)
  await set('A', '1', 'staging')
  await assert.rejects(set('A', '1', 'nowhere'), (error: Error & { detail?: object }) => {
    assert.deepEqual(error.detail, { environment: 'nowhere' })
    return refusal('NOT_FOUND')(error)
  })
})

test('an empty value is a value', async () => {
  const { variable } = await set('EMPTY', '')
  assert.equal(variable.value, '')
  await assert.rejects(setSecret('EMPTY_SECRET', ''), refusal('VALIDATION_FAILED', 'value'))
})

test('a level holds 200 names, variables and secrets together, and so many bytes', async () => {
  const org = await anOrg(c)
  const { apiKey, slug, id } = org
  const own = await aSession(c.db, { orgId: id })
  const put = (name: string, value = 'x') => c.call(ops.variables.set, { org: slug, name, value }, { apiKey })
  for (let i = 0; i < 199; i++) await put(`V${i}`)
  await c.call(ops.secrets.set, { org: slug, name: 'S', value: 'x' }, { apiKey: own })
  await assert.rejects(put('ONE_MORE'), refusal('VALIDATION_FAILED', 'name'))
  await assert.rejects(
    c.call(ops.secrets.set, { org: slug, name: 'ONE_MORE', value: 'x' }, { apiKey: own }),
    refusal('VALIDATION_FAILED', 'name'),
  )
  for (let i = 0; i < 7; i++) await put(`V${i}`, 'x'.repeat(65_536))
  await assert.rejects(put('V7', 'x'.repeat(65_536)), refusal('PAYLOAD_TOO_LARGE', 'value'))
  await put('V7', 'smaller')
})

test('what another org has is not there', async () => {
  const org = await anOrg(c)
  await set('OURS', 'x')
  assert.deepEqual(await list(org), [])
  const { apiKey, slug } = org
  await assert.rejects(c.call(ops.variables.delete, { org: slug, name: 'OURS' }, { apiKey }), refusal('NOT_FOUND'))
  await assert.rejects(c.call(ops.variables.list, { org: c.org }, { apiKey }), refusal('NOT_FOUND'))
  await assert.rejects(c.call(ops.secrets.list, { org: c.org }, { apiKey }), refusal('NOT_FOUND'))
})

test('a member reads and does not write', async () => {
  const apiKey = await aKey(c.db, { orgId: c.orgId, role: 'member' })
  await c.call(ops.variables.list, { org: c.org }, { apiKey })
  await assert.rejects(
    c.call(ops.variables.set, { org: c.org, name: 'X', value: 'x' }, { apiKey }),
    refusal('FORBIDDEN'),
  )
})

test('twenty who set at once all succeed, and the last one is in the set that runs get', async () => {
  const org = await anOrg(c)
  const { apiKey, slug, id } = org
  const other = await c.another()
  const own = await aSession(c.db, { orgId: id })
  await Promise.all(
    Array.from({ length: 20 }, (_, i) => {
      const at = i % 2 === 0 ? c : other
      if (i % 5 === 0) return at.call(ops.secrets.set, { org: slug, name: `S${i}`, value: `${i}` }, { apiKey: own })
      return at.call(ops.variables.set, { org: slug, name: i % 4 === 1 ? 'SAME' : `V${i}`, value: `${i}` }, { apiKey })
    }),
  )
  const listed = Object.fromEntries((await list(org)).map(({ name, value }) => [name, value]))
  const [head] = await c.db<{ setId: string; hasSecrets: boolean }[]>`
    select set_id, has_secrets from variable_heads where org_id = ${id} and environment = ''`
  assert.deepEqual(await c.deps.variableSets.get(head!.setId), listed)
  assert.equal(head!.hasSecrets, true)
})
