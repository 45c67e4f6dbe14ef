import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { anAgent, type Link, type TestAgent } from '../../_kit/agent.ts'
import { aCoordinator, runOf, type TestCoordinator } from '../../_kit/coordinator.ts'
import { calls, identity, said } from '../../_kit/journal.ts'
import { journalCrew } from '../../_kit/journal-crew.ts'
import { aWorkflow } from '../../_kit/workflow.ts'

let c: TestCoordinator
let agent: TestAgent
let link: Link

before(async () => {
  c = await aCoordinator()
  await aWorkflow(c, { slug: 'any' })
  await aWorkflow(c, { slug: 'child' })
  agent = await anAgent(c)
  link = await agent.connect()
})
after(async () => {
  agent.close()
  await c.stop()
})

const { begun } = journalCrew(() => ({ c, agent, link }), 'any')

test('the call that is one too many creates no child, and its run says what to do', async () => {
  const first = await begun()
  await link.report(first, 2, calls(25_000, 'child'), calls(25_001, 'child'))
  const run = await runOf(c, first.run)
  assert.deepEqual([run.status, run.error?.code], ['failed', 'JOURNAL_FULL'])
  const { runs } = await c.call(ops.runs.children, { run: first.run })
  assert.equal(runs.length, 1)
  await c.call(ops.runs.cancel, { run: runs[0]!.id })
})

test('a journal with more than 32 MiB of results fails its run, which says what to do', async () => {
  const first = await begun()
  const large = `"${'x'.repeat(1024 * 1024)}"`
  for (let n = 1; n <= 33; n++) {
    const entry = identity(n, 'step', { name: 'large' })
    const verdict = await link.report(first, n + 1, said({ op: 'close', entry, state: 'done', result: large }))
    if (verdict.kind === 'stale') break
  }
  const run = await runOf(c, first.run)
  assert.deepEqual([run.status, run.error?.code], ['failed', 'JOURNAL_FULL'])
  assert.match(run.error!.message, /Return less from step\(\)/)
})

test('questions and long names count as results do', async () => {
  const first = await begun()
  const path = 'p'.repeat(10_000)
  const onTimeoutText = `"${'x'.repeat(1024 * 1024)}"`
  let questions = 0
  for (let n = 1; n <= 40; n++) {
    const asked = { for: 'input' as const, prompt: 'Q?', schemaText: null, timeoutMs: 3_600_000, onTimeoutText }
    const question = said({ op: 'open', entry: identity(n, 'input', { name: 'Q?', parent: path }), ask: asked })
    if ((await link.report(first, n + 1, question)).kind === 'stale') break
    questions = n
  }
  const run = await runOf(c, first.run)
  assert.deepEqual([run.status, run.error?.code, questions], ['failed', 'JOURNAL_FULL', 32])
})
