import assert from 'node:assert/strict'
import { after, before, beforeEach, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { anAgent, end, type Link, PATIENT_MS, returned, start, takeNext, type TestAgent } from '../_kit/agent.ts'
import { ageOffers, SWEEPING } from '../_kit/ageing.ts'
import { aCoordinatorOfItsOwn, aRun, refusal, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { aSession } from '../_kit/credentials.ts'
import { countedDb } from '../_kit/counted-db.ts'
import { aKeyText } from '../_kit/environments.ts'
import { calls, evicted, parked, sleeps } from '../_kit/journal.ts'
import { until } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'
import { cleanVariableSets } from '../../environments/sets.ts'

let c: TestCoordinator
let agent: TestAgent
let link: Link
let session: string
let made = 0
/** Of the test's own, so that the sets of one test are none of another's. */
let staging: string

before(async () => {
  c = await aCoordinatorOfItsOwn({ ...SWEEPING, SECRET_KEY: aKeyText() })
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
  c.call(ops.variables.set, { org: c.org, name, value, environment })
const drop = (name: string, environment?: string) => c.call(ops.variables.delete, { org: c.org, name, environment })
const setSecret = (name: string, environment?: string) =>
  c.call(ops.secrets.set, { org: c.org, name, value: 'hush', environment }, { apiKey: session })

/** What a run that starts now is given, in the test's environment unless said otherwise. */
async function given(environment: string | null = staging) {
  const { id } = await aRun(c, { workflow: 'any', ...(environment !== null && { environment }) })
  const [offer] = await agent.poll()
  assert.equal(offer?.run, id)
  await link.accept(offer)
  await link.report(offer, 1, end(returned(null)))
  return { variables: offer.variables, secrets: offer.secrets }
}

test('a run is given what its environment has over what the org has', async () => {
  assert.deepEqual(await given(null), { variables: {}, secrets: false })
  await set('BOTH', 'org')
  await set('OF_ORG', '1')
  await set('BOTH', 'staging', staging)
  assert.deepEqual((await given()).variables, { BOTH: 'staging', OF_ORG: '1' })
  assert.deepEqual((await given(null)).variables, { BOTH: 'org', OF_ORG: '1' })
  await drop('BOTH', staging)
  assert.deepEqual((await given()).variables, { BOTH: 'org', OF_ORG: '1' })
  await drop('BOTH')
  await drop('OF_ORG')
  assert.deepEqual((await given()).variables, {})
})

test('a secret takes the place of a variable of the org, and the offer says that there are secrets', async () => {
  await set('HIDDEN', 'org')
  await setSecret('HIDDEN', staging)
  assert.deepEqual(await given(), { variables: {}, secrets: true })
  assert.deepEqual(await given(null), { variables: { HIDDEN: 'org' }, secrets: false })
  await drop('HIDDEN')
})

test('a run keeps the variables of its first claim: after a lost offer, a crash, a replay and a retry by descriptor', async () => {
  await set('PINNED', 'first', staging)
  const run = await aRun(c, { workflow: 'any', environment: staging })
  const [lost] = await agent.poll()
  assert.deepEqual([lost?.epoch, lost?.variables], [1, { PINNED: 'first' }])
  await set('PINNED', 'second', staging)
  await set('NEW', '1', staging)
  await ageOffers(c, run.id)
  const [offer] = await agent.poll(1, PATIENT_MS)
  assert.deepEqual([offer?.run, offer?.epoch, offer?.variables], [run.id, 2, { PINNED: 'first' }])

  await link.accept(offer!)
  await link.report(offer!, 1, start(), end({ how: 'killed', signal: 'SIGKILL' }))
  const restarted = await takeNext(agent, link)
  assert.deepEqual([restarted.run, restarted.attempt, restarted.variables], [run.id, 2, { PINNED: 'first' }])

  await link.report(restarted, 2, sleeps(1, 0), parked('sleep'), evicted())
  const [replayed] = await agent.poll(1, PATIENT_MS)
  assert.deepEqual([replayed?.run, replayed?.replay, replayed?.variables], [run.id, true, { PINNED: 'first' }])
  await link.accept(replayed!)
  await link.report(replayed!, 1, end(returned(null)))
  assert.deepEqual((await given()).variables, { PINNED: 'second', NEW: '1' })
})

test('a run that started when there was nothing keeps having nothing', async () => {
  const run = await aRun(c, { workflow: 'any' })
  const first = await takeNext(agent, link)
  assert.deepEqual(first.variables, {})
  await set('LATER', '1')
  await link.report(first, 2, end({ how: 'killed', signal: 'SIGKILL' }))
  const again = await takeNext(agent, link)
  assert.deepEqual([again.run, again.variables], [run.id, {}])
  await link.report(again, 2, end(returned(null)))
  await drop('LATER')
})

test('a child without an environment has that of its parent, and is given its variables', async () => {
  await set('FAMILY', 'yes', staging)
  await aWorkflow(c, { slug: `child-${made}` })
  await aRun(c, { workflow: 'any', environment: staging })
  const parent = await takeNext(agent, link)
  await link.report(parent, 2, calls(1, `child-${made}`))
  const child = await takeNext(agent, link)
  assert.deepEqual([child.environment, child.variables], [staging, { FAMILY: 'yes' }])
  await link.report(child, 2, end(returned(null)))
  await link.report(parent, 3, end(returned(null)))
})

test('a child of a parent without an environment has none either', async () => {
  await aWorkflow(c, { slug: `child-${made}` })
  await aRun(c, { workflow: 'any' })
  const parent = await takeNext(agent, link)
  await link.report(parent, 2, calls(1, `child-${made}`))
  const child = await takeNext(agent, link)
  assert.equal(child.environment, null)
  await link.report(child, 2, end(returned(null)))
  await link.report(parent, 3, end(returned(null)))
})

test('sets that are alike are one, and a secret of the org makes no new one', async () => {
  await set('ALIKE', '1')
  const heads = () => c.db<{ setId: string }[]>`
    select distinct set_id from variable_heads where environment in ('', ${staging})`
  assert.equal((await heads()).length, 1)
  const [before] = await heads()
  await setSecret('UNLIKE')
  assert.deepEqual([...(await heads())], [before])
  await c.call(ops.secrets.delete, { org: c.org, name: 'UNLIKE' }, { apiKey: session })
  await drop('ALIKE')
})

test('a secret of the environment hides a variable that the org is given later', async () => {
  await setSecret('HIDDEN', staging)
  await set('HIDDEN', 'of the org')
  assert.deepEqual((await given()).variables, {})
  assert.deepEqual((await given(null)).variables, { HIDDEN: 'of the org' })
  await c.call(ops.secrets.delete, { org: c.org, environment: staging, name: 'HIDDEN' }, { apiKey: session })
  assert.deepEqual((await given()).variables, { HIDDEN: 'of the org' })
  await drop('HIDDEN')
})

test('a change of what the org has is written once, whatever its environments have', async () => {
  const size = async () => {
    const [row] = await c.db<{ bytes: number }[]>`select sum(bytes)::int as bytes from variable_texts`
    return row!.bytes
  }
  for (let i = 0; i < 5; i++) {
    await c.call(ops.environments.create, { org: c.org, name: `${staging}-${i}` })
    await set('OWN', `${i}`.repeat(50_000), `${staging}-${i}`)
  }
  const before = await size()
  await set('OF_ORG', 'x'.repeat(1000))
  assert.ok((await size()) - before < 1100)
  assert.equal((await given(`${staging}-3`)).variables['OWN'], '3'.repeat(50_000))
  assert.equal((await given(`${staging}-3`)).variables['OF_ORG'], 'x'.repeat(1000))
  await drop('OF_ORG')
})

test('a value that changes to and fro makes no new sets', async () => {
  const count = async () =>
    (await c.db<{ count: number }[]>`select count(*)::int as count from variable_sets`)[0]!.count
  await set('TO_AND_FRO', 'a')
  await set('TO_AND_FRO', 'b')
  const before = await count()
  for (const value of ['a', 'b', 'a']) await set('TO_AND_FRO', value)
  assert.equal(await count(), before)
  assert.equal((await given()).variables['TO_AND_FRO'], 'a')
  await drop('TO_AND_FRO')
})

test('very many retired sets are removed in portions, and those of runs and heads stay', async () => {
  await set('PINNED', '1', staging)
  await c.db`
    insert into variable_sets (org_id, base_id, own_id, retired_at)
    select org_id, base_id, own_id, now() - interval '2 hours'
    from variable_sets s
    join generate_series(1, 12_000) on s.id = (select min(id) from variable_sets)`
  await cleanVariableSets(c.deps)
  const [row] = await c.db<{ count: number }[]>`
    select count(*)::int as count from variable_sets where retired_at < now() - interval '1 hour'`
  assert.equal(row!.count, 0)
  assert.deepEqual((await given()).variables, { PINNED: '1' })
})

test('very many texts are removed in portions, and those of sets and heads stay', async () => {
  await set('WORDED', '1', staging)
  await c.db`
    insert into variable_texts (org_id, digest, bytes, content, used_at)
    select ${c.orgId}, sha256(n::text::bytea), 2, '{}', now()
    from generate_series(1, 1200) n`
  await c.db`update variable_texts set used_at = now() - interval '2 hours'`
  const [{ inUse }] = await c.db<[{ inUse: number }]>`
    select count(*)::int as in_use
    from variable_texts t
    where exists (select from variable_sets s where t.id in (s.base_id, s.own_id))
       or exists (select from variable_heads h where h.text_id = t.id)`
  const counted = countedDb(c.db)
  await cleanVariableSets({ ...c.deps, db: counted.db })
  const [{ left }] = await c.db<[{ left: number }]>`select count(*)::int as left from variable_texts`
  assert.equal(left, inUse)
  assert.ok(counted.looks() >= 5, `${counted.looks()} statements`)
  assert.deepEqual((await given()).variables, { WORDED: '1' })
})

test('who replaces large variables again and again is refused before they fill the disk', async () => {
  const [row] = await c.db<[{ id: string }]>`
    insert into variable_texts (org_id, digest, bytes, content)
    values (${c.orgId}, 'as if', ${64 * 1024 * 1024 + 1}, '{}')
    returning id`
  await assert.rejects(set('LARGE', 'x'.repeat(5000), staging), refusal('RATE_LIMITED', 'value'))
  await set('SMALL', 'x', staging)
  assert.deepEqual((await given()).variables, { SMALL: 'x' })
  await c.db`update variable_texts set used_at = now() - interval '2 hours' where id = ${row.id}`
  await cleanVariableSets(c.deps)
  await set('LARGE', 'x'.repeat(5000), staging)
})

test('sets go when they were retired an hour ago and no unfinished run has them', async () => {
  const rows = async () => (await c.db<{ id: string }[]>`select id from variable_sets order by id`).map(({ id }) => id)
  const setOf = async (run: string) =>
    (await c.db<{ variableSetId: string }[]>`select variable_set_id from runs where id = ${run}`)[0]!.variableSetId
  const clean = () => cleanVariableSets(c.deps)
  const age = () => c.db`update variable_sets set retired_at = now() - interval '2 hours' where retired_at is not null`

  await set('SWEPT', '1', staging)
  const ids = [await aRun(c, { workflow: 'any', environment: staging })].map(({ id }) => id)
  const old = await takeNext(agent, link)
  const pinned = await setOf(ids[0]!)
  await set('SWEPT', '2', staging)
  const between = (await rows()).at(-1)!
  await set('SWEPT', '3', staging)
  await clean()
  assert.ok((await rows()).includes(between), 'it was retired only now')
  await age()
  // Behind the mark unfinished runs stand in a table of their own.
  await c.db`insert into runs_remaining (run_id, org_id) values (${old.run}, ${c.orgId}) on conflict do nothing`
  await c.db`update sweep_mark set run_id = ${old.run}`
  await clean()
  assert.ok(!(await rows()).includes(between))
  assert.ok((await rows()).includes(pinned), 'a run has it')
  await link.report(old, 2, end(returned(null)))
  await until('the end', async () => (await runOf(c, old.run)).status === 'completed')
  await clean()
  assert.ok(!(await rows()).includes(pinned))
  assert.deepEqual((await given()).variables, { SWEPT: '3' })
})

test('what is kept of sets is bounded, and what was dropped is read again', async () => {
  const { createVariableSets } = await import('../../environments/sets.ts')
  const sets = createVariableSets(c.db, 4000)
  const ids: string[] = []
  for (let i = 0; i < 6; i++) {
    await set('LONG', `${i}`.repeat(1000), staging)
    const [head] = await c.db<{ setId: string }[]>`select set_id from variable_heads where environment = ${staging}`
    ids.push(head!.setId)
    assert.equal((await sets.get(head!.setId))['LONG'], `${i}`.repeat(1000))
  }
  await c.db`delete from variable_sets where id = ${ids[4]!}`
  await c.db`delete from variable_sets where id = ${ids[0]!}`
  await assert.rejects(sets.get(ids[0]!), /is missing/)
  assert.equal((await sets.get(ids[5]!))['LONG'], '5'.repeat(1000))
})
