import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { FAULTS, type FaultCode } from '@windlass/shared/errors.ts'
import { requestOf } from '@windlass/shared/ops/call.ts'
import { exampleOf, isDocumented } from '@windlass/shared/ops/words.ts'
import { allOps } from '@windlass/shared/ops/index.ts'
import type { AnyOp } from '@windlass/shared/ops/op.ts'
import { DEADLINE_MS, until } from '@windlass/shared/test/_kit/until.ts'
import { faultsOf } from '../../api/faults-of.ts'
import { anAgent } from '../_kit/agent.ts'
import { type TestCoordinator, aCoordinatorOfItsOwn } from '../_kit/coordinator.ts'
import { aSession } from '../_kit/credentials.ts'
import { aKeyText, anEnvironment } from '../_kit/environments.ts'

let c: TestCoordinator
let session: string
before(async () => {
  c = await aCoordinatorOfItsOwn({ SECRET_KEY: aKeyText() })
  session = await aSession(c.db, { orgId: c.orgId })
  await anEnvironment(c, 'production')
  const agent = await anAgent(c, { name: 'build-1', slots: 8 })
  // The list of the examples shows those that are online.
  await c.db`update runners set last_poll_at = now() where id = ${agent.id}`
})
after(() => c.stop())

/** Ids of the examples, and what stands for them here as soon as an answer has said it. */
const real = new Map<string, string>([['acme', 'default']])

function translated(value: unknown): unknown {
  if (typeof value === 'string') return real.get(value) ?? value
  if (Array.isArray(value)) return value.map(translated)
  if (typeof value !== 'object' || value === null) return value
  return Object.fromEntries(Object.entries(value).map(([key, each]) => [key, translated(each)]))
}

/** Remembers which of our things stands where the example has one of its own. */
function learn(example: unknown, answer: unknown): void {
  if (typeof example !== 'object' || example === null || typeof answer !== 'object' || answer === null) return
  for (const [key, each] of Object.entries(example)) {
    const ours = (answer as Record<string, unknown>)[key]
    if (key === 'id' && typeof each === 'string' && typeof ours === 'string' && !real.has(each)) real.set(each, ours)
    learn(each, ours)
  }
}

async function send(row: AnyOp) {
  const input = translated(exampleOf(row).input) as Record<string, unknown>
  const { url, ...init } = requestOf({ url: c.url, apiKey: session }, row, input)
  const response = await fetch(url, { ...init, signal: AbortSignal.timeout(DEADLINE_MS) })
  if (row.wire === 'sse') {
    // It would go on for as long as its run does.
    await response.body?.cancel()
    return { status: response.status, answer: undefined }
  }
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.startsWith('application/json')
  return { status: response.status, answer: isJson ? (JSON.parse(text) as Record<string, unknown>) : undefined }
}

/** What is the business of a workflow, of what was changed, or of what is waited for. */
const FREE = new Set([
  'descriptor',
  'inputSchema',
  'outputSchema',
  'data',
  'input',
  'before',
  'after',
  'causes',
  'filter',
  'failures',
])

/** Fields of the example that the answer does not have, as paths. Where the answer has null or nothing in a list there is nothing to see. */
function missing(example: unknown, answer: unknown, path = ''): string[] {
  if (Array.isArray(example))
    return Array.isArray(answer) && answer.length > 0 ? missing(example[0], answer[0], `${path}[0]`) : []
  if (typeof example !== 'object' || example === null || answer === null) return []
  if (typeof answer !== 'object') return [path]
  return Object.entries(example).flatMap(([key, each]) => {
    const at = `${path}.${key}`
    if (!(key in answer)) return [at]
    return FREE.has(key) ? [] : missing(each, (answer as Record<string, unknown>)[key], at)
  })
}

/** First what makes things, in the order in which they need each other; what ends them comes last. */
const FIRST = [
  'environments.create',
  'workflows.create',
  'connections.create',
  'runs.trigger',
  'keys.create',
  'variables.set',
  'secrets.set',
]
const LAST = [
  'connections.delete',
  'runs.cancel',
  'schedules.delete',
  'variables.delete',
  'secrets.delete',
  'environments.delete',
  'keys.revoke',
]

function inOrder(): AnyOp[] {
  const rows = allOps.filter(isDocumented)
  const named = (ids: readonly string[]) => ids.map((id) => rows.find((row) => row.id === id)!)
  const rest = rows.filter((row) => !FIRST.includes(row.id) && !LAST.includes(row.id))
  return [...named(FIRST), ...rest, ...named(LAST)]
}

/** What the story of the examples has and this org has not: a question, a run that has ended, blocked or failed. */
const OTHERWISE: Readonly<Record<string, FaultCode>> = {
  'runs.output': 'RUN_NOT_FINISHED',
  'runs.restart': 'RUN_NOT_BLOCKED',
  'runs.delete': 'RUN_NOT_FINISHED',
  'runs.retry': 'NOT_FOUND',
  'jobs.cancel': 'CONFLICT',
  'inputs.get': 'NOT_FOUND',
  'deliveries.get': 'NOT_FOUND',
  'deliveries.payload': 'NOT_FOUND',
  'deliveries.replay': 'NOT_FOUND',
  'hooks.receive': 'UNVERIFIED',
  'hooks.receiveInbound': 'UNVERIFIED',
  'inputs.respond': 'NOT_FOUND',
}

/** They have little to do, and the one of the story would be over or not. */
const jobsToEnd = () =>
  until('the end of all jobs', async () => {
    const [row] = await c.db<[{ count: number }]>`select count(*)::int from bulk_jobs where finished_at is null`
    return row.count === 0
  })

test('the service takes every example as it is written, and answers in the shape that is shown', async () => {
  for (const row of inOrder()) {
    if (row.id === 'jobs.cancel') await jobsToEnd()
    const { status, answer } = await send(row)
    const fault = OTHERWISE[row.id]
    if (fault !== undefined) {
      assert.ok(faultsOf(row).has(fault), row.id)
      assert.equal(status, FAULTS[fault][0], `${row.id}: ${JSON.stringify(answer)}`)
      continue
    }
    assert.equal(status, row.success, `${row.id}: ${JSON.stringify(answer)}`)
    if (answer === undefined || row.id === 'service.openapi') continue
    const { output } = exampleOf(row)
    assert.deepEqual(missing(output, answer), [], row.id)
    learn(output, answer)
  }
})
