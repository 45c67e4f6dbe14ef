import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { callOp } from '@windlass/shared/ops/call.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Call } from '../../api/call.ts'
import { createHandlers } from '../../api/index.ts'
import { anAgent, end, keyPair, registration, returned, start } from '../_kit/agent.ts'
import { entriesBy, entriesOf } from '../_kit/audit.ts'
import { aCoordinatorOfItsOwn, aRun, rawCall, refusal, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { aBlockedRun, accepted, aParkedRun, call, type Crew, question } from '../_kit/waiting.ts'
import { aVersion, aWorkflow } from '../_kit/workflow.ts'
import { filesOf } from '../_kit/workflow-files.ts'

let c: TestCoordinator
let crew: Crew

before(async () => {
  c = await aCoordinatorOfItsOwn()
  await aWorkflow(c, { slug: 'any' })
  const agent = await anAgent(c, { slots: 50 })
  crew = { c, agent, link: await agent.connect() }
})
after(async () => {
  crew.agent.close()
  await c.stop()
})

const cancel = (run: string, reason = '') => c.call(ops.runs.cancel, { run, reason })

/** The only entry that the work adds, without what differs from one time to the next. */
async function onlyEntryBy(work: () => Promise<unknown>) {
  const entries = await entriesBy(c, work)
  assert.equal(entries.length, 1, JSON.stringify(entries))
  const { action, target, before, after } = entries[0]!
  return { action, target, before, after }
}

test('an entry says who, with which credential, by which request and when', async () => {
  const { id } = await aRun(c, { workflow: 'any' })
  const [entry] = await entriesBy(c, async () => {
    const headers = { authorization: `Bearer ${c.apiKey}`, 'x-request-id': 'the-request-of-this-test' }
    const answer = await fetch(`${c.url}/v1/runs/${id}/cancel`, { method: 'POST', headers })
    assert.equal(answer.status, 200)
    await answer.text()
  })
  assert.deepEqual([entry?.org, entry?.via, entry?.requestId], [c.org, 'rest', 'the-request-of-this-test'])
  assert.deepEqual([entry?.actor.kind, entry?.actor.name], ['key', 'test'])
  assert.equal(entry?.actor.id, (await runOf(c, id)).trigger.actor)
  assert.ok(Math.abs(entry!.createdAt - Date.now()) < 60_000)
})

test('a cancel that does something is logged once, however often it is asked for', async () => {
  const { id } = await aRun(c, { workflow: 'any' })
  assert.deepEqual(await onlyEntryBy(() => Promise.all(Array.from({ length: 20 }, () => cancel(id, 'typo')))), {
    action: 'runs.cancel',
    target: { type: 'run', id, name: null },
    before: { status: 'queued' },
    after: { status: 'cancelled', reason: 'typo' },
  })
  assert.deepEqual(await entriesBy(c, () => cancel(id)), [])
})

test('a run with a process is logged as being cancelled, and its children are not changes of the caller', async () => {
  const parent = await aParkedRun(crew, { workflow: 'any' }, call('any'))
  const { runs } = await c.call(ops.runs.children, { run: parent.run })
  const entry = await onlyEntryBy(() => cancel(parent.run))
  assert.deepEqual(entry.target, { type: 'run', id: parent.run, name: null })
  assert.deepEqual([entry.before, entry.after], [{ status: 'waiting_for_child' }, { status: 'cancelling', reason: '' }])
  assert.equal((await runOf(c, runs[0]!.id)).status, 'cancelled')
})

test('what is refused is no change', async () => {
  await aRun(c, { workflow: 'any' })
  const offer = await accepted(crew)
  await crew.link.report(offer, 1, start(), end(returned(1)))
  const files = filesOf({ 'workflow.jsonc': '{ "slug": "any" }', 'index.ts': 'export const run = () => null\n' })
  const entries = await entriesBy(c, async () => {
    await assert.rejects(cancel(offer.run), refusal('RUN_ALREADY_FINISHED'))
    await assert.rejects(cancel(newId('run')), refusal('NOT_FOUND'))
    await assert.rejects(c.call(ops.runs.restart, { run: offer.run }), refusal('RUN_NOT_BLOCKED'))
    await assert.rejects(c.call(ops.runs.retry, { run: offer.run, version: 99 }), refusal('NOT_FOUND'))
    await assert.rejects(c.call(ops.pools.create, { org: c.org, name: 'default' }), refusal('CONFLICT'))
    await assert.rejects(c.call(ops.pools.createToken, { pool: newId('pool') }), refusal('NOT_FOUND'))
    await assert.rejects(c.call(ops.workflows.create, { org: c.org, files }), refusal('WORKFLOW_EXISTS'))
    await assert.rejects(c.call(ops.workflows.update, { org: c.org, workflow: 'nowhere', files }), refusal('NOT_FOUND'))
  })
  assert.deepEqual(entries, [])
})

test('a trigger is not logged: the run says who started it', async () => {
  assert.deepEqual(await entriesBy(c, () => aRun(c, { workflow: 'any' })), [])
})

test('a run that a model started by MCP says so', async () => {
  const [entry] = await entriesBy(c, () => c.call(ops.pools.create, { org: c.org, name: 'for-its-caller' }))
  const { id, name } = entry!.actor
  const caller = {
    kind: 'key',
    id,
    name,
    orgId: c.orgId,
    org: c.org,
    role: 'owner',
    scopes: [],
    requestId: 'r',
  } as const
  const input = { org: c.org, workflow: 'any', tags: [], priority: 0, delayMs: 0 }
  for (const via of ['rest', 'mcp'] as const) {
    const asked = { input, header: () => undefined, caller: { ...caller, via } }
    const { run } = (await createHandlers(c.deps).runs.trigger(asked as unknown as Call<never>)) as {
      run: { id: string }
    }
    const { trigger } = await runOf(c, run.id)
    assert.deepEqual(trigger, { kind: via === 'mcp' ? 'mcp' : 'api', actor: id })
  }
})

test('a retry is logged with the run that it made', async () => {
  const workflow = await aWorkflow(c)
  const first = await aRun(c, { workflow: workflow.slug })
  await aVersion(c, workflow)
  let retried = ''
  const entry = await onlyEntryBy(async () => (retried = (await c.call(ops.runs.retry, { run: first.id })).run.id))
  assert.deepEqual(entry, {
    action: 'runs.retry',
    target: { type: 'run', id: first.id, name: null },
    before: null,
    after: { run: retried, version: 2 },
  })
  for (const run of [first.id, retried]) await cancel(run)
})

test('of twenty restarts at once the one that counts is logged', async () => {
  for (const { runId } of await c.db`select run_id from run_queue`) await cancel(String(runId))
  const { run } = await aBlockedRun(crew, { workflow: 'any' })
  const restart = () => c.call(ops.runs.restart, { run })
  assert.deepEqual(await onlyEntryBy(() => Promise.allSettled(Array.from({ length: 20 }, restart))), {
    action: 'runs.restart',
    target: { type: 'run', id: run, name: null },
    before: { status: 'sleeping', attempt: 1 },
    after: { status: 'queued', attempt: 2 },
  })
  await cancel(run)
})

test('of twenty answers at once the first is logged, without what it says', async () => {
  const { run } = await aParkedRun(crew, { workflow: 'any' }, question())
  const [input] = (await c.call(ops.inputs.list, { org: c.org, run })).inputs
  const respond = () => c.call(ops.inputs.respond, { input: input!.id, answer: { password: 'not-for-the-log' } })
  const entry = await onlyEntryBy(() => Promise.allSettled(Array.from({ length: 20 }, respond)))
  assert.deepEqual([entry.action, entry.target], ['inputs.respond', { type: 'input', id: input!.id, name: null }])
  const { answeredBy } = (await c.call(ops.inputs.get, { input: input!.id })).input
  assert.deepEqual([entry.before, entry.after], [{ status: 'open' }, { status: 'answered', answeredBy, run }])
  assert.doesNotMatch(JSON.stringify(await entriesOf(c)), /not-for-the-log/)
})

test('a deploy is logged with the version before and the one after', async () => {
  const files = (text: string) =>
    filesOf({ 'workflow.jsonc': '{ "slug": "deployed" }', 'index.ts': `export const run = () => ${text}\n` })
  const made = await onlyEntryBy(() => c.call(ops.workflows.create, { org: c.org, files: files('1') }))
  const { workflow, version } = await c.call(ops.workflows.get, { org: c.org, workflow: 'deployed' })
  const target = { type: 'workflow', id: workflow.id, name: 'deployed' }
  const first = { version: 1, name: 'deployed', bundleDigest: version.bundleDigest }
  assert.deepEqual(made, { action: 'workflows.create', target, before: null, after: first })

  const update = (text: string) =>
    c.call(ops.workflows.update, { org: c.org, workflow: 'deployed', files: files(text) })
  const changed = await onlyEntryBy(() => update('2'))
  const { bundleDigest } = (await c.call(ops.workflows.get, { org: c.org, workflow: 'deployed' })).version
  const second = { version: 2, name: 'deployed', bundleDigest }
  assert.deepEqual(changed, { action: 'workflows.update', target, before: first, after: second })
  assert.notEqual(first.bundleDigest, bundleDigest)

  const entries = await entriesBy(c, () => Promise.all(['3', '4', '5', '6'].map(update)))
  assert.deepEqual(
    // Newest first: each begins where the one before it has ended.
    entries.map((entry) => [entry.before?.['version'], entry.after?.['version']]),
    [5, 4, 3, 2].map((version) => [version, version + 1]),
  )
})

test('a pool, a token for it and the runner that joins are logged, the token nowhere', async () => {
  const made = await onlyEntryBy(() => c.call(ops.pools.create, { org: c.org, name: 'gpu' }))
  const pool = { id: made.target.id, name: 'gpu' }
  assert.deepEqual([made.action, made.target], ['pools.create', { type: 'runner_pool', ...pool }])
  assert.deepEqual([made.before, made.after], [null, { name: 'gpu' }])

  let token = ''
  const minted = await onlyEntryBy(async () => {
    const answer = await c.call(ops.pools.createToken, { pool: pool.id, reusable: true, uses: 2 })
    token = answer.registrationToken.token
    const { uses, expiresAt } = answer.registrationToken
    assert.deepEqual([uses, expiresAt > Date.now()], [2, true])
  })
  assert.deepEqual([minted.action, minted.target.type], ['pools.createToken', 'registration_token'])
  assert.deepEqual([minted.after?.['pool'], minted.after?.['uses']], [pool, 2])

  const { x } = await keyPair()
  const [joined] = await entriesBy(c, async () => {
    const ask = registration(token, x, { name: 'box', slots: 3, labels: ['a100'] })
    await callOp({ url: c.url }, ops.runnerSurface.register, ask)
    await assert.rejects(callOp({ url: c.url }, ops.runnerSurface.register, { ...ask, token: 'wlr_no' }))
  })
  assert.deepEqual(joined?.actor, { kind: 'token', id: minted.target.id, name: 'registration token of the pool gpu' })
  assert.deepEqual([joined.via, joined.action, joined.target.name], ['runner', 'runners.register', 'box'])
  assert.deepEqual(joined.after, { pool, slots: 3, labels: ['a100'] })
  assert.ok(joined.requestId)
  assert.doesNotMatch(JSON.stringify(await entriesOf(c)), new RegExp(token))
})

test('a change whose entry cannot be written does not happen', async () => {
  const { id } = await aRun(c, { workflow: 'any' })
  await c.db`create function no_log() returns trigger language plpgsql as $$ begin raise 'the log is full'; end $$`
  await c.db`create trigger no_log before insert on audit_log for each row execute function no_log()`
  const runs = async () => (await c.db`select 1 from runs`).length
  const was = await runs()
  try {
    for (const verb of ['cancel', 'retry'])
      assert.equal((await rawCall(c, 'POST', `/v1/runs/${id}/${verb}`)).status, 500)
    assert.equal((await rawCall(c, 'POST', `/v1/orgs/${c.org}/runner-pools`, '{"name":"unlogged"}')).status, 500)
  } finally {
    await c.db`drop trigger no_log on audit_log`
  }
  assert.equal((await runOf(c, id)).status, 'queued')
  assert.equal(await runs(), was)
  assert.equal((await c.db`select 1 from runner_pools where name = 'unlogged'`).length, 0)
})
