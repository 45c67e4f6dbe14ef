import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { ApiError } from '@windlass/shared/ops/api-error.ts'
import type { Entry } from '@windlass/shared/wire/agent.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { readConfig } from '../../config.ts'
import { anAgent, end, returned, takeNext } from '../_kit/agent.ts'
import { aCoordinatorOfItsOwn, aRun, logOf, rawCall, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { ask } from '../_kit/mcp.ts'
import { aParkedRun, question } from '../_kit/waiting.ts'
import { filesOf } from '../_kit/workflow-files.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const KIB = 1024
const MIB = 1024 * KIB

let c: TestCoordinator
/** Over the same database, with lower limits. */
let strict: TestCoordinator
/** With small events. */
let small: TestCoordinator

before(async () => {
  const raised = { MAX_INPUT_BYTES: 2 * MIB, MAX_ANSWER_BYTES: 2 * MIB, MAX_BODY_BYTES: 64 * KIB }
  c = await aCoordinatorOfItsOwn({ ...raised, MAX_BUNDLE_BYTES: MIB })
  await aWorkflow(c, { slug: 'any' })
  const lowered = { MAX_INPUT_BYTES: KIB, MAX_ANSWER_BYTES: KIB, MAX_OUTPUT_BYTES: KIB }
  strict = await c.another({ ...lowered, MAX_BUNDLE_BYTES: 64 * KIB })
  small = await c.another({ MAX_EVENT_DATA_BYTES: 4 * KIB })
})
after(() => c.stop())

async function sizesOf(work: Promise<unknown>): Promise<unknown[]> {
  const error = await work.then(
    () => assert.fail('it was not refused'),
    (fault: ApiError) => fault,
  )
  const { path = null, bytes, limitBytes } = error.detail ?? {}
  return [error.code, path, bytes, limitBytes]
}

const text = (bytes: number) => 'x'.repeat(bytes - 2)

test('an input may be as large as the setting says, over REST and MCP', async () => {
  const run = await aRun(c, { workflow: 'any', input: text(2 * MIB) })
  assert.equal(run.status, 'queued')
  const tooLarge = aRun(c, { workflow: 'any', input: text(2 * MIB + 1) })
  assert.deepEqual(await sizesOf(tooLarge), ['PAYLOAD_TOO_LARGE', 'input', 2 * MIB + 1, 2 * MIB])
  const trigger = (bytes: number) =>
    ask(c, 'tools/call', { name: 'trigger_now', arguments: { workflow: 'any', input: text(bytes) } })
  assert.equal((await trigger(2 * MIB)).body.result.isError, undefined)
  const { error } = JSON.parse((await trigger(2 * MIB + 1)).body.result.content[0].text) as { error: ApiError }
  assert.deepEqual([error.code, error.detail?.['limitBytes']], ['PAYLOAD_TOO_LARGE', 2 * MIB])
})

test('another body may be as large as its own setting says', async () => {
  const { id } = await aRun(c, { workflow: 'any' })
  const cancel = (bytes: number) =>
    rawCall(c, 'POST', `/v1/runs/${id}/cancel`, `{"reason":"${'x'.repeat(bytes - 13)}"}`)
  assert.equal((await cancel(64 * KIB)).status, 400, 'it was read, and its reason is too long')
  const refused = await cancel(64 * KIB + 1)
  const { error } = (await refused.json()) as { error: ApiError }
  assert.deepEqual([refused.status, error.detail], [413, { bytes: 64 * KIB + 1, limitBytes: 64 * KIB }])
})

test('the files of a deploy may be as large as the setting says, and what was deployed stays readable', async () => {
  const files = (bytes: number) =>
    filesOf({
      'workflow.jsonc': '{"slug":"large"}',
      'index.ts': 'export const run = () => 1',
      'a.md': 'x'.repeat(bytes),
    })
  const sent = files(MIB)
  const bytes = sent.reduce((sum, { content }) => sum + content.length, 0)
  const create = c.call(ops.workflows.create, { org: c.org, files: sent })
  assert.deepEqual(await sizesOf(create), ['PAYLOAD_TOO_LARGE', 'files', bytes, MIB])
  await c.call(ops.workflows.create, { org: c.org, files: files(MIB / 2) })
  const read = await strict.call(ops.workflows.get, { org: c.org, workflow: 'large' })
  assert.equal(read.files.find(({ path }) => path === 'a.md')?.content.length, MIB / 2)
  const changes = [{ path: 'b.md', content: 'b' }]
  const update = strict.call(ops.workflows.update, { org: c.org, workflow: 'large', changes, baseVersion: 1 })
  assert.equal((await sizesOf(update))[3], 64 * KIB)
})

test('an answer may be as large as the setting says', async () => {
  const agent = await anAgent(c)
  const link = await agent.connect()
  const [first, second] = [1, 2].map(() => aParkedRun({ c, agent, link }, { workflow: 'any' }, question()))
  const asked = async (offer: Awaited<typeof first>) =>
    (await c.call(ops.inputs.list, { org: c.org, run: offer!.run })).inputs[0]!.id
  const [input, other] = [await asked(await first), await asked(await second)]
  const tooLarge = strict.call(ops.inputs.respond, { input, answer: text(KIB + 1) })
  assert.deepEqual(await sizesOf(tooLarge), ['PAYLOAD_TOO_LARGE', 'answer', KIB + 1, KIB])
  await strict.call(ops.inputs.respond, { input, answer: text(KIB) })
  const { input: answered } = await c.call(ops.inputs.respond, { input: other, answer: text(2 * MIB) })
  assert.equal(answered.status, 'answered')
  agent.close()
})

test('an event may hold what the setting says, which the agent is told, and more is named by its size', async () => {
  const { id } = await aRun(c, { workflow: 'any' })
  const agent = await anAgent(small, { slots: 50 })
  const link = await agent.connect()
  let offer = await takeNext(agent, link)
  while (offer.run !== id) offer = await takeNext(agent, link)
  assert.equal(offer.eventDataBytes, 4 * KIB)
  const event = (bytes: number): Entry => ['e', Date.now(), 'phase', JSON.stringify({ name: text(bytes - 9) })]
  await link.report(offer, 2, event(6 * KIB), event(6 * KIB + 1), end(returned(text(4 * KIB + 1))))
  const shown = (await logOf(c, id)).filter(({ type }) => type === 'phase' || type === 'output')
  const [most, more, output] = shown.map(({ data }) => data)
  assert.equal((most!['name'] as string).length, 6 * KIB - 11)
  assert.deepEqual(more, { truncated: true, bytes: 6 * KIB + 1, limitBytes: 6 * KIB })
  assert.deepEqual(output, { truncated: true, bytes: 4 * KIB + 1, limitBytes: 4 * KIB })
  agent.close()
})

test('a limit that was lowered keeps no run from being executed or retried with the input that it has', async () => {
  const input = text(MIB)
  const { id } = await aRun(c, { workflow: 'any', input })
  await c.call(ops.runs.cancel, { run: id })
  const { run } = await strict.call(ops.runs.retry, { run: id })
  assert.equal((await strict.call(ops.runs.input, { run: run.id })).input, input)
  const agent = await anAgent(strict, { slots: 50 })
  const link = await agent.connect()
  let offer = await takeNext(agent, link)
  while (offer.run !== run.id) offer = await takeNext(agent, link)
  assert.equal(offer.inputText.length, MIB)
  assert.equal(offer.outputBytes, KIB)
  await link.report(offer, 2, end(returned(1)))
  assert.equal((await runOf(strict, run.id)).status, 'completed')
  agent.close()
})

test('a setting by its former name is refused with the new one, and limits that contradict each other', () => {
  const read = (name: string, value: number) =>
    readConfig({ WINDLASS_DATABASE_URL: 'postgres://x', [`WINDLASS_${name}`]: String(value) })
  assert.throws(() => read('OUTPUT_BYTES', 2048), /WINDLASS_OUTPUT_BYTES is called WINDLASS_MAX_OUTPUT_BYTES now/)
  assert.equal(read('MAX_BUNDLE_BYTES', 64 * MIB).maxBundleBytes, 64 * MIB)
  assert.throws(() => read('MAX_INPUT_BYTES', 5 * MIB), /MAX_INPUT_BYTES/)
  const both = { WINDLASS_MAX_BUNDLE_BYTES: String(64 * MIB), WINDLASS_MAX_ORG_DEPLOYS_BYTES: String(64 * MIB) }
  assert.throws(
    () => readConfig({ WINDLASS_DATABASE_URL: 'postgres://x', ...both }),
    /WINDLASS_MAX_ORG_DEPLOYS_BYTES must be at least 85899346, the largest body by WINDLASS_MAX_BUNDLE_BYTES/,
  )
})
