// What else the contract promises of runs that wait: retries, limits, delays, keys, and a way out of a replay that cannot go on.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { readFileSync } from 'node:fs'
import { join } from 'node:path'
import type { Run } from '@windlass/shared/model/run.ts'
import { ensurePool } from '../_kit/agents.ts'
import * as ast from '../_kit/ast.ts'
import { begin, durableInstance, isEvicted, isNow, MODES, outputOf, questionsOf } from '../_kit/durable.ts'
import { respond } from '../_kit/responder.ts'
import { deploy, ended, get, hasSaid, programFiles, trigger, typesOf, wholeLog } from '../_kit/runs.ts'
import { until } from '../_kit/until.ts'

const durable = durableInstance({ onceUp })
const { client, folder } = durable

async function onceUp(): Promise<void> {
  await ensurePool(client(), 'idle')
  await durable.interpreter({ slug: 'idle', pool: 'idle' })
  await deploy(client(), programFiles('durable/random', { slug: 'random', pool: 'replayed', timeout: '1m' }))
}

/** Answers the first question of the run. */
async function answer(id: string, value: unknown): Promise<void> {
  const [input] = await questionsOf(client(), id)
  assert.ok(await respond(client(), input!.id, value))
}

test('a retry of a run in any status is a new run from the top', async () => {
  const gate = `${folder()}/retry`
  const of: Record<string, string> = {
    queued: await begin(durable, 'idle', ast.step('a')),
    running: await begin(durable, 'parked', ast.seq(ast.log('begun'), ast.gate(gate))),
    sleeping: await begin(durable, 'parked', ast.sleep(3_600_000)),
    awaiting_input: await begin(durable, 'replayed', ast.ask('retry')),
    waiting_for_child: await begin(durable, 'parked', ast.child(ast.ask('retry'))),
    completed: await begin(durable, 'parked', ast.step('a')),
    failed: await begin(durable, 'parked', ast.fail('no')),
    cancelled: await begin(durable, 'idle', ast.step('a')),
  }
  await client().runs.cancel({ run: of['cancelled']! })
  const retries: string[] = []
  for (const [status, id] of Object.entries(of)) {
    await isNow(client(), id, status as Run['status'])
    const { run } = await client().runs.retry({ run: id })
    assert.equal(run.retryOf, id)
    assert.equal(run.attempt, 1)
    assert.equal((await get(client(), id)).status, status)
    retries.push(run.id)
  }
  for (const run of [...Object.values(of), ...retries])
    await client()
      .runs.cancel({ run })
      .catch(() => undefined)
  for (const run of [...Object.values(of), ...retries]) await ended(client(), run)
})

for (const mode of MODES) {
  test(`${mode}: a workflow that calls itself completes with a limit of one`, async () => {
    const slug = `alone-${mode}`
    await durable.interpreter({ slug, pool: mode, concurrency: 1 })
    const program = ast.seq(ast.child(ast.seq(ast.child(ast.step('deepest')), ast.step('inner'))), ast.step('outer'))
    const runs = await Promise.all([1, 2, 3].map(() => begin(durable, slug, program)))
    for (const id of runs) assert.equal((await ended(client(), id)).status, 'completed')
  })

  test(`${mode}: runs that wait do not count against the limit, and no more than the limit execute`, async () => {
    const slug = `limited-${mode}`
    await durable.interpreter({ slug, pool: mode, concurrency: { limit: 2, key: 'input.key' } })
    const key = `limited-${mode}`
    const program = ast.seq(ast.step('in', { takesMs: 50 }), ast.ask('limit'), ast.step('out'))
    const runs = await Promise.all(Array.from({ length: 8 }, () => begin(durable, slug, program, key)))
    await Promise.all(runs.map((id) => isNow(client(), id, 'awaiting_input')))
    await Promise.all(runs.map((id) => answer(id, 1)))
    for (const id of runs) assert.equal((await ended(client(), id)).status, 'completed')
    assert.ok(mostAtOnce(await Promise.all(runs.map((id) => wholeLog(client(), id)))) <= 2)
  })
}

/** How many of the runs were being executed at the same time before their first wait. */
function mostAtOnce(logs: Awaited<ReturnType<typeof wholeLog>>[]): number {
  const changes = logs.flatMap((events) => {
    const from = events.find(({ type }) => type === 'run.pending')!.at
    const to = events.find(({ type }) => type === 'run.awaiting_input')!.at
    return [
      { at: from, by: 1 },
      { at: to, by: -1 },
    ]
  })
  // One that ends in the millisecond in which another begins has ended before.
  changes.sort((a, b) => a.at - b.at || a.by - b.by)
  let now = 0
  return Math.max(...changes.map(({ by }) => (now += by)))
}

test('a run with a delay is queued, and begins when the delay is over', async () => {
  const { run } = await client().runs.trigger({ workflow: 'parked', input: { program: ast.step('a') }, delayMs: 1500 })
  assert.equal(run.status, 'queued')
  const done = await ended(client(), run.id)
  assert.equal(done.status, 'completed')
  assert.ok(done.claimedAt! - done.createdAt >= 1450, `${done.claimedAt! - done.createdAt} ms`)
})

test('the same key and request make one run, over fifty triggers at once', async () => {
  const ask = { workflow: 'parked', input: { program: ast.step('a') }, idempotencyKey: 'once' }
  const answers = await Promise.all(Array.from({ length: 50 }, () => client().runs.trigger(ask)))
  const ids = new Set(answers.map(({ run }) => run.id))
  assert.equal(ids.size, 1)
  await ended(client(), [...ids][0]!)
  const again = await client().runs.trigger(ask)
  assert.equal(again.run.status, 'completed')
  const other = { ...ask, input: { program: ast.step('b') } }
  await assert.rejects(client().runs.trigger(other), { code: 'IDEMPOTENCY_CONFLICT', status: 409 })
})

test('why says what a run waits for, for each of its waits', async () => {
  const id = await begin(durable, 'replayed', ast.all(ast.sleep(3_600_000), ast.ask('why'), ast.child(ast.ask('why'))))
  await isNow(client(), id, 'awaiting_input')
  const { why } = await client().runs.why({ run: id })
  assert.deepEqual(why.causes.map(({ code }) => code).toSorted(), ['CHILD', 'INPUT', 'SLEEP'])
  assert.ok(
    why.causes.every(({ at }) => /^index\.ts:\d+/.test(at ?? '')),
    JSON.stringify(why.causes),
  )
  await client().runs.cancel({ run: id })
  await ended(client(), id)
})

/** Where the program draws its lot anew. */
function drawingLine(): number {
  const lines = readFileSync(join(import.meta.dirname, '../programs/durable/random/index.ts'), 'utf8').split('\n')
  return lines.findIndex((line) => line.includes('await step(')) + 1
}

async function blocked(): Promise<Run> {
  const id = await trigger(client(), 'random')
  await isNow(client(), id, 'awaiting_input')
  await isEvicted(durable, id)
  await answer(id, 'yes')
  await hasSaid(client(), id, 'run.blocked')
  return get(client(), id)
}

test('a program that is another one when it is replayed blocks its run, which says where and keeps its status', async () => {
  const run = await blocked()
  assert.equal(run.status, 'awaiting_input')
  assert.equal(run.blocked?.code, 'REPLAY_MISMATCH')
  const line = `index.ts:${drawingLine()}`
  assert.match(run.blocked.expected, /draw 0\./)
  assert.ok(run.blocked.expected.includes(line), run.blocked.expected)
  assert.match(run.blocked.received, /draw 0\./)
  assert.notEqual(run.blocked.expected, run.blocked.received)
  assert.ok(run.blocked.at.startsWith(line), run.blocked.at)
  const { why } = await client().runs.why({ run: run.id })
  assert.equal(why.causes[0]?.code, 'BLOCKED')

  // Its agent does other things by now. Nothing wakes it, and a person may end it.
  await ended(client(), await begin(durable, 'replayed', ast.ask('other', { timeoutMs: 500, onTimeout: 1 })))
  assert.equal((await get(client(), run.id)).blocked?.code, 'REPLAY_MISMATCH')
  await client().runs.cancel({ run: run.id })
  assert.equal((await ended(client(), run.id)).status, 'cancelled')
})

test('a blocked run that is restarted begins from the top, with the answers it has', async () => {
  const { id } = await blocked()
  const { run } = await client().runs.restart({ run: id })
  assert.equal(run.attempt, 2)
  assert.equal(run.blocked, null)
  const done = await ended(client(), id)
  assert.equal(done.status, 'completed', done.error?.message)
  assert.deepEqual(await outputOf(client(), id), { attempt: 2, answer: 'yes' })
  assert.ok(typesOf(await wholeLog(client(), id)).includes('run.restarted'))
  await assert.rejects(client().runs.restart({ run: id }), { code: 'RUN_NOT_BLOCKED', status: 409 })
})

test('a blocked run that is retried is a new run, and stays', async () => {
  const { id } = await blocked()
  const { run } = await client().runs.retry({ run: id })
  assert.equal(run.retryOf, id)
  await until('the question of the new run', async () => (await get(client(), run.id)).status === 'awaiting_input')
  assert.equal((await get(client(), id)).blocked?.code, 'REPLAY_MISMATCH')
  for (const each of [id, run.id]) await client().runs.cancel({ run: each })
  for (const each of [id, run.id]) await ended(client(), each)
})
