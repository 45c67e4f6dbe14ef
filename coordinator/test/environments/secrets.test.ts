import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { callOp } from '@windlass/shared/ops/call.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Offer } from '@windlass/shared/wire/agent.ts'
import { anAgent, end, type Link, returned, takeNext, type TestAgent } from '../_kit/agent.ts'
import { entriesOf } from '../_kit/audit.ts'
import { aCoordinatorOfItsOwn, anOrg, aRun, rawCall, refusal, type TestCoordinator } from '../_kit/coordinator.ts'
import { aSession } from '../_kit/credentials.ts'
import { aKeyText } from '../_kit/environments.ts'
import { refusedBy } from '../_kit/mcp.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let agent: TestAgent
let link: Link
let session: string
const keyText = aKeyText()
let made = 0
/** Of the test's own. */
let staging: string

before(async () => {
  c = await aCoordinatorOfItsOwn({ SECRET_KEY: keyText })
  session = await aSession(c.db, { orgId: c.orgId })
  agent = await anAgent(c)
  link = await agent.connect()
  await aWorkflow(c, { slug: 'any', descriptor: { retries: { crash: 2 } } })
})
beforeEach(async () => {
  staging = `staging-${++made}`
  await c.call(ops.environments.create, { org: c.org, name: staging })
})
after(async () => {
  agent.close()
  await c.stop()
})

const set = (name: string, value: string, environment?: string) =>
  c.call(ops.secrets.set, { org: c.org, name, value, environment }, { apiKey: session })
const drop = (name: string, environment?: string) =>
  c.call(ops.secrets.delete, { org: c.org, name, environment }, { apiKey: session })
const setVariable = (name: string, value: string, environment?: string) =>
  c.call(ops.variables.set, { org: c.org, name, value, environment })

const secretsOf = async ({ run, token }: Pick<Offer, 'run' | 'token'>, at: { url: string } = c) =>
  (await callOp({ url: at.url, apiKey: token }, ops.runnerSurface.secrets, { run })).secrets

async function begun(environment: string | null = staging): Promise<Offer> {
  await aRun(c, { workflow: 'any', ...(environment !== null && { environment }) })
  return takeNext(agent, link)
}
const finish = (offer: Offer) => link.report(offer, 2, end(returned(null)))

test('a secret is set, listed by its name alone, and deleted', async () => {
  const { secret } = await set('LISTED', 'hush-hush', staging)
  assert.deepEqual(Object.keys(secret).sort(), ['environment', 'name', 'updatedAt', 'updatedBy'])
  assert.match(secret.updatedBy, /^ses_/)
  const answer = await rawCall(c, 'GET', `/v1/orgs/${c.org}/secrets?environment=${staging}`)
  assert.ok(!(await answer.text()).includes('hush-hush'))
  const { secrets } = await c.call(ops.secrets.list, { org: c.org, environment: staging })
  assert.deepEqual(secrets, [secret])
  assert.deepEqual((await c.call(ops.variables.list, { org: c.org, environment: staging })).variables, [])
  await drop('LISTED', staging)
  await assert.rejects(drop('LISTED', staging), refusal('NOT_FOUND'))
})

test('an API key sets no secret, whatever its role', async () => {
  const args = { org: c.org, name: 'BY_KEY', value: 'x' }
  await assert.rejects(c.call(ops.secrets.set, args), refusal('FORBIDDEN'))
  await assert.rejects(c.call(ops.secrets.delete, { org: c.org, name: 'BY_KEY' }), refusal('FORBIDDEN'))
})

test('an API key deletes no environment that holds secrets, over REST or MCP; a session does', async () => {
  const args = { org: c.org, environment: staging }
  await set('KEPT', 'hush-hush', staging)
  await assert.rejects(c.call(ops.environments.delete, args), refusal('FORBIDDEN'))
  assert.equal(await refusedBy(c, 'delete_environment', { environment: staging }), 'FORBIDDEN')
  const { secrets } = await c.call(ops.secrets.list, args)
  assert.deepEqual(
    secrets.map(({ name }) => name),
    ['KEPT'],
  )
  await c.call(ops.environments.delete, args, { apiKey: session })
  await assert.rejects(c.call(ops.environments.delete, args, { apiKey: session }), refusal('NOT_FOUND'))
  assert.deepEqual((await c.call(ops.secrets.list, args)).secrets, [])
})

test('changes of secrets are in the audit log without their values', async () => {
  await set('AUDITED', 'value-one', staging)
  await set('AUDITED', 'value-two', staging)
  await drop('AUDITED', staging)
  const entries = await entriesOf(c, { target: `${staging}/AUDITED` })
  const facts = { name: 'AUDITED', environment: staging }
  assert.deepEqual(
    entries.map(({ action, before, after }) => [action, before, after]),
    [
      ['secrets.delete', facts, null],
      ['secrets.set', facts, facts],
      ['secrets.set', null, facts],
    ],
  )
})

test('no column of the database holds a secret as it is', async () => {
  const canary = 'canary-7f3a9c55'
  await set('CANARY', canary, staging)
  const tables = await c.db<{ name: string }[]>`
    select table_name as name from information_schema.tables where table_schema = 'public' and table_type = 'BASE TABLE'`
  for (const { name } of tables) {
    const rows = await c.db`select 1 from ${c.db(name)} t where t::text like ${`%${canary}%`}`
    assert.equal(rows.length, 0, name)
  }
})

test('a program reads the secrets of its environment over those of the org, as they are at that moment', async () => {
  await set('BOTH', 'org')
  await set('OF_ORG', 'Zürich 😀\nsecond line')
  await set('BOTH', 'staging', staging)
  const offer = await begun()
  assert.equal(offer.secrets, true)
  assert.deepEqual(await secretsOf(offer), { BOTH: 'staging', OF_ORG: 'Zürich 😀\nsecond line' })
  await set('BOTH', 'turned', staging)
  assert.equal((await secretsOf(offer))['BOTH'], 'turned')
  await drop('BOTH', staging)
  assert.equal((await secretsOf(offer))['BOTH'], 'org')
  await finish(offer)
  const base = await begun(null)
  assert.deepEqual(await secretsOf(base), { BOTH: 'org', OF_ORG: 'Zürich 😀\nsecond line' })
  await finish(base)
  await drop('BOTH')
  await drop('OF_ORG')
})

test('secrets are for nobody to keep', async () => {
  await set('KEPT', 'x', staging)
  const offer = await begun()
  const { headers } = await rawCall({ url: c.url, apiKey: offer.token }, 'GET', `/runner/v1/runs/${offer.run}/secrets`)
  assert.deepEqual([headers.get('cache-control'), headers.get('etag')], ['no-store', null])
  await finish(offer)
})

test('a run without secrets reads none, though the coordinator has no key', async () => {
  const keyless = await c.another({ SECRET_KEY: aKeyText() })
  const offer = await begun()
  assert.deepEqual([offer.secrets, await secretsOf(offer, keyless)], [false, {}])
  await finish(offer)
})

test('the token opens the secrets of its own run, while that is on this process', async () => {
  await set('MINE', 'x', staging)
  const [offer, other] = [await begun(), await begun()]
  await assert.rejects(secretsOf({ run: other.run, token: offer.token }), refusal('NOT_FOUND'))
  await assert.rejects(secretsOf({ run: offer.run, token: c.apiKey }), refusal('UNAUTHENTICATED'))
  await link.report(offer, 2, end({ how: 'killed', signal: 'SIGKILL' }))
  await assert.rejects(secretsOf(offer), refusal('STALE_PLACEMENT'))
  const again = await takeNext(agent, link)
  assert.deepEqual([again.run, again.attempt], [offer.run, 2])
  await assert.rejects(secretsOf(offer), refusal('STALE_PLACEMENT'))
  assert.deepEqual(await secretsOf(again), { MINE: 'x' })
  await finish(again)
  await assert.rejects(secretsOf(again), refusal('STALE_PLACEMENT'))
  await finish(other)
})

test('a variable of the environment takes the place of a secret of the org for runs that start from then on', async () => {
  await set('EITHER', 'secret')
  const early = await begun()
  await setVariable('EITHER', 'open', staging)
  const late = await begun()
  assert.deepEqual([early.variables, await secretsOf(early)], [{}, { EITHER: 'secret' }])
  assert.deepEqual([late.variables, await secretsOf(late)], [{ EITHER: 'open' }, {}])
  await finish(early)
  await finish(late)
  await drop('EITHER')
})

test('without its environment a run is refused its secrets, in place of being given those of the org', async () => {
  await set('OF_ORG', 'other system')
  const offer = await begun()
  await c.db`delete from environments where name = ${staging}`
  await assert.rejects(secretsOf(offer), refusal('NOT_FOUND'))
  await finish(offer)
  await drop('OF_ORG')
})

test('a row that was moved or changed does not open, and says which it is', async () => {
  await set('LEFT', 'left value', staging)
  await set('RIGHT', 'right value', staging)
  await c.db`
    update variables v
    set sealed = o.sealed
    from variables o
    where v.environment = ${staging} and o.environment = ${staging} and v.name <> o.name`
  const offer = await begun()
  await assert.rejects(secretsOf(offer), (error: Error & { detail?: { secret?: string; path?: string } }) => {
    assert.equal(error.detail?.secret, 'LEFT')
    assert.ok(!error.message.includes('value'))
    return refusal('SECRETS_UNAVAILABLE')(error)
  })
  await set('LEFT', 'left value', staging)
  await set('RIGHT', 'right value', staging)
  assert.deepEqual(await secretsOf(offer), { LEFT: 'left value', RIGHT: 'right value' })
  await finish(offer)
})

test('a coordinator without a key serves everything but secrets, and says how to mend it', async () => {
  const keyless = await aCoordinatorOfItsOwn()
  const own = await aSession(keyless.db, { orgId: keyless.orgId })
  const setThere = keyless.call(ops.secrets.set, { org: keyless.org, name: 'A', value: 'x' }, { apiKey: own })
  await assert.rejects(setThere, /no key for secrets\. Set WINDLASS_SECRET_KEY_FILE/)
  await assert.rejects(setThere, refusal('SECRETS_UNAVAILABLE'))
  assert.deepEqual((await keyless.call(ops.secrets.list, { org: keyless.org })).secrets, [])
  assert.deepEqual((await entriesOf(keyless, { action: ['secrets.set'] })).length, 0)
  await keyless.call(ops.variables.set, { org: keyless.org, name: 'A', value: 'x' })
  await keyless.stop()
})

test('a coordinator with another key names the one that is missing, and seals with its own', async () => {
  await set('SEALED', 'by the first', staging)
  const other = await c.another({ SECRET_KEY: aKeyText() })
  const offer = await begun()
  await assert.rejects(secretsOf(offer, other), (error: Error & { detail?: { key?: string; path?: string } }) => {
    assert.match(error.detail?.key ?? '', /^[0-9a-f]{12}$/)
    return refusal('SECRETS_UNAVAILABLE')(error)
  })
  const both = await c.another({ SECRET_KEY: `${aKeyText()}, ${keyText}` })
  assert.deepEqual(await secretsOf(offer, both), { SEALED: 'by the first' })
  await finish(offer)
})

test('a secret of another org looks absent', async () => {
  await set('OURS', 'x')
  const { slug, apiKey, id } = await anOrg(c)
  const own = await aSession(c.db, { orgId: id })
  assert.deepEqual((await c.call(ops.secrets.list, { org: slug }, { apiKey })).secrets, [])
  await assert.rejects(c.call(ops.secrets.delete, { org: slug, name: 'OURS' }, { apiKey: own }), refusal('NOT_FOUND'))
  await assert.rejects(c.call(ops.secrets.delete, { org: c.org, name: 'OURS' }, { apiKey: own }), refusal('NOT_FOUND'))
  await drop('OURS')
})

test('a value that is refused is in no answer', async () => {
  const canary = 'canary-11d0'
  for (const value of [`${canary}\0`, canary.repeat(10_000), { canary }, [canary]]) {
    const answer = await rawCall(
      { url: c.url, apiKey: session },
      'PUT',
      `/v1/orgs/${c.org}/secrets/REFUSED`,
      JSON.stringify({ value }),
    )
    assert.equal(answer.status, 400)
    assert.ok(!(await answer.text()).includes(canary))
  }
})

test('the secrets of a level have 64 KiB together, whatever the sizes of the values', async () => {
  const sizes = [40_000, 1, 2, 3, 25_530]
  assert.equal(
    sizes.reduce((sum, size) => sum + size),
    64 * 1024,
  )
  for (const [index, size] of sizes.entries()) await set(`S${index}`, 'x'.repeat(size), staging)
  await assert.rejects(set('ONE_MORE', 'x', staging), refusal('PAYLOAD_TOO_LARGE', 'value'))
  await set('S1', 'y', staging)
  await assert.rejects(set('S1', 'yy', staging), /65537 bytes together, and may have 65536/)
})
