import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { after, before, mock, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import type { WebhookAuth } from '@windlass/shared/model/webhook.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { commitDeliveries, type NewDelivery } from '../../inbound/commit.ts'
import type { Tx } from '../../db/client.ts'
import { pointTo } from '../../inbound/store-keys.ts'
import { rowsRead } from '../_kit/rows-read.ts'
import { ageDelays } from '../_kit/ageing.ts'
import { aCoordinatorOfItsOwn, type TestCoordinator } from '../_kit/coordinator.ts'
import { aSession } from '../_kit/credentials.ts'
import { aHook, deliver, type Hook, send } from '../_kit/inbound.ts'
import { until } from '../_kit/until.ts'
import { aWorkflow } from '../_kit/workflow.ts'

let c: TestCoordinator
let session: string

before(async () => {
  c = await aCoordinatorOfItsOwn({ SECRET_KEY: randomBytes(32).toString('base64') })
  session = await aSession(c.db, { orgId: c.orgId })
})
after(() => c.stop())

/** The webhook of a workflow that debounces. */
async function aDebounced(auth: WebhookAuth): Promise<Hook> {
  const { slug } = await aWorkflow(c, { descriptor: { debounce: { wait: '1h' } } })
  await c.call(ops.webhooks.set, { org: c.org, workflow: slug, auth }, { apiKey: session })
  return aHook(c, session, slug)
}

/** A sender whose deliveries have nothing by which a second one is known. */
async function shown(hook: Hook, n: number) {
  const headers = { 'content-type': 'application/json', authorization: `Bearer ${hook.secret}` }
  return send(hook.url, { body: JSON.stringify({ n }), headers })
}

/** What was committed for a delivery, to be committed again as after a lost answer, and what it was answered. */
async function written<A>(act: () => Promise<A>): Promise<{ answer: A; item: NewDelivery }> {
  const add = mock.method(c.deps.deliveries, 'add')
  const answer = await act()
  add.mock.restore()
  return { answer, item: add.mock.calls[0]!.arguments[0] }
}

/** Another delivery of the same. */
function anotherOf(item: NewDelivery): NewDelivery {
  const starts = item.starts.map(({ run }) => ({ run: { ...run, id: newId('run') }, keys: [] }))
  return { ...item, id: newId('dlv'), starts }
}

const runsOf = async ({ id }: Hook) =>
  (await c.db<{ id: string }[]>`select id from runs where trigger_id = ${id}`).map((run) => run.id)
const mergesInto = (run: string) =>
  c.db<{ data: string }[]>`select data from run_events where run_id = ${run} and type = 'run.merged'`

test('a call that was merged is merged once, and its repetition names the same run', async () => {
  const hook = await aDebounced('bearer')
  const first = (await shown(hook, 1)).receipt.runs[0]!.id
  const { answer, item } = await written(() => shown(hook, 2))
  const [again] = await commitDeliveries(c.db, [item])
  assert.deepEqual(again!.merged, [{ id: first, orgId: c.orgId }])
  assert.deepEqual([again!.outcome, again!.reason], [answer.receipt.delivery.outcome, answer.receipt.delivery.reason])
  assert.deepEqual(
    again!.matches.map(({ runId, outcome }) => [runId, outcome]),
    [[first, 'triggered']],
  )
  assert.equal((await mergesInto(first)).length, 1)
})

test('a merged call finds its keys among all that its workflow had in a week', async () => {
  const hook = await aDebounced('hmac')
  const first = (await deliver(hook, { body: '{"n":1}' })).receipt.runs[0]!.id
  const { item } = await written(() => deliver(hook, { body: '{"n":2}' }))
  const [{ run, keys }] = item.starts as [NewDelivery['starts'][number]]
  await c.db`
    insert into delivery_keys (org_id, workflow_id, key, run_id, expires_at)
    select org_id, workflow_id, sha256(n::text::bytea), run_id, expires_at
    from delivery_keys
    cross join generate_series(1, 2000) n
    where workflow_id = ${run.workflowId} and key = decode(${keys[0]!.hash}, 'hex')`
  const rows = keys.map(({ hash: key, ttlMs }) => {
    const { orgId, workflowId } = run
    return { orgId, workflowId, key, runId: first, ttlMs }
  })
  const { read } = await rowsRead(c.db, 'delivery_keys', async (tx) => {
    await pointTo(tx as unknown as Tx, rows, run.id)
    return []
  })
  assert.ok(read <= 2 * keys.length, `${read} rows were read for ${keys.length} keys`)
  const pointed = await c.db`select from delivery_keys where run_id = ${run.id}`
  assert.equal(pointed.length, keys.length)
})

test('a repetition makes no run when the one that it was merged into has begun meanwhile', async () => {
  const hook = await aDebounced('bearer')
  const first = (await shown(hook, 1)).receipt.runs[0]!.id
  const { answer, item } = await written(() => shown(hook, 2))
  await ageDelays(c, first)
  await until('its entry', async () => (await c.db`select from run_queue where run_id = ${first}`).length > 0)
  const [again] = await commitDeliveries(c.db, [item])
  assert.equal(again!.matches[0]!.runId, first)
  assert.deepEqual(await runsOf(hook), [first])
  const { delivery } = await c.call(ops.deliveries.get, { delivery: answer.receipt.delivery.id })
  assert.deepEqual([delivery.outcome, delivery.matches[0]!.runId], ['triggered', first])
})

test('a repetition of the call that made the run is merged into nothing', async () => {
  const hook = await aDebounced('bearer')
  const { answer, item } = await written(() => shown(hook, 1))
  const first = answer.receipt.runs[0]!.id
  const [again] = await commitDeliveries(c.db, [item])
  assert.deepEqual([again!.matches[0]!.runId, again!.merged], [first, []])
  assert.equal((await mergesInto(first)).length, 0)
})

test('others that are committed along with a repetition are written', async () => {
  const hook = await aDebounced('bearer')
  const first = (await shown(hook, 1)).receipt.runs[0]!.id
  const { item } = await written(() => shown(hook, 2))
  const other = anotherOf(item)
  const committed = await commitDeliveries(c.db, [other, item])
  assert.deepEqual(
    committed.map(({ matches, merged }) => [matches[0]!.runId, merged.length]),
    [
      [first, 1],
      [first, 1],
    ],
  )
  assert.equal((await mergesInto(first)).length, 2)
  assert.equal((await c.call(ops.deliveries.get, { delivery: other.id })).delivery.matches[0]!.runId, first)
})

test('a repetition waits for a commit that is still under way', async () => {
  const hook = await aDebounced('bearer')
  const first = (await shown(hook, 1)).receipt.runs[0]!.id
  const other = anotherOf((await written(() => shown(hook, 2))).item)
  const committed = await Promise.all(Array.from({ length: 4 }, () => commitDeliveries(c.db, [other])))
  assert.deepEqual(new Set(committed.map(([one]) => one!.matches[0]!.runId)), new Set([first]))
  assert.equal((await mergesInto(first)).length, 2)
})

test('a call with a signature that was merged is no duplicate of itself', async () => {
  const hook = await aDebounced('hmac')
  await deliver(hook, { body: '{"n":1}' })
  const { answer, item } = await written(() => deliver(hook, { body: '{"n":2}' }))
  const [again] = await commitDeliveries(c.db, [item])
  assert.equal(answer.receipt.delivery.outcome, 'triggered')
  assert.deepEqual(
    again!.matches.map(({ outcome, runId }) => [outcome, runId]),
    [['triggered', answer.receipt.runs[0]!.id]],
  )
})
