// Cancels and timeouts reach a run wherever it is, and all that it has called.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Node } from '../programs/durable/interpreter/ast.ts'
import { ensurePool } from '../_kit/agents.ts'
import * as ast from '../_kit/ast.ts'
import {
  ALWAYS_REPLAY,
  begin,
  durableInstance,
  isEvicted,
  isNow,
  type Mode,
  MODES,
  questionsOf,
  rests,
} from '../_kit/durable.ts'
import { ended, hasSaid, textsOf, typesOf, wholeLog } from '../_kit/runs.ts'
import { until } from '../_kit/until.ts'

const HOUR_MS = 3_600_000
const durable = durableInstance()
const { client, folder } = durable

/** Each way to wait, and the status it shows. */
const WAITS = [
  ['sleeping', ast.sleep(HOUR_MS)],
  ['awaiting_input', ast.ask('stops')],
  ['waiting_for_child', ast.child(ast.sleep(HOUR_MS))],
] as const satisfies (readonly [string, Node])[]

async function isCancelled(id: string): Promise<string[]> {
  const run = await ended(client(), id)
  assert.equal(run.status, 'cancelled')
  const events = await wholeLog(client(), id)
  assert.deepEqual(typesOf(events).slice(-2), ['run.cancelling', 'run.cancelled'])
  return textsOf(events)
}

/** The runs that it has called, and those that these have called. */
async function descendantsOf(id: string, count: number): Promise<string[]> {
  const found: string[] = []
  for (let parent: string | undefined = id; found.length < count; parent = found.at(-1)) {
    const of: string = parent!
    const look = async () => (await client().runs.children({ run: of })).runs[0]?.id
    found.push(await until(`a child of ${of}`, look))
  }
  return found
}

for (const mode of MODES) {
  for (const [status, waiting] of WAITS) {
    test(`${mode}: a cancel reaches a run that is ${status}`, async () => {
      const id = await begin(durable, mode, ast.concluded(waiting, 'tidied'))
      await rests(durable, mode, id, status)
      await client().runs.cancel({ run: id, reason: 'enough' })
      // Without a process there is nobody to tidy up.
      assert.deepEqual(await isCancelled(id), mode === 'parked' ? ['tidied CancelledError'] : [])
    })
  }

  test(`${mode}: a cancel goes down to grandchildren`, async () => {
    const waiting = (inner: Node) => ast.concluded(ast.child(inner), 'tidied')
    const id = await begin(durable, mode, waiting(waiting(ast.concluded(ast.ask('deep'), 'tidied'))))
    const below = await descendantsOf(id, 2)
    await rests(durable, mode, below[1]!, 'awaiting_input')
    await client().runs.cancel({ run: id })
    for (const each of [id, ...below]) await isCancelled(each)
    assert.deepEqual((await client().inputs.list({ run: below[1]! })).inputs, [])
  })

  test(`${mode}: a question of a run that was cancelled takes no answer`, async () => {
    const id = await begin(durable, mode, ast.ask('closed'))
    const [input] = await questionsOf(client(), id)
    await client().runs.cancel({ run: id })
    await isCancelled(id)
    await assert.rejects(client().inputs.respond({ input: input!.id, answer: 1 }), {
      code: 'INPUT_CLOSED',
      status: 409,
    })
  })

  test(`${mode}: twenty cancels and twenty answers at once leave one end`, async () => {
    const ids = await Promise.all(Array.from({ length: 20 }, () => begin(durable, mode, ast.ask('both'))))
    await Promise.all(
      ids.map(async (id) => {
        const [input] = await questionsOf(client(), id)
        const calls = [client().runs.cancel({ run: id }), client().inputs.respond({ input: input!.id, answer: 1 })]
        await Promise.allSettled(calls)
        const run = await ended(client(), id)
        assert.ok(['cancelled', 'completed'].includes(run.status), run.status)
      }),
    )
  })

  test(`${mode}: time that a run waits is not counted against its timeout, time that it computes is, over all its waits`, async () => {
    const slug = `active-${mode}`
    await durable.interpreter({ slug, pool: mode, timeout: '1s' })
    const patient = await begin(durable, slug, ast.seq(ast.sleep(2000), ast.step('a', { takesMs: 10 })))
    assert.equal((await ended(client(), patient)).status, 'completed')

    const busy = ast.step('busy', { takesMs: 700 })
    const id = await begin(durable, slug, ast.seq(busy, ast.sleep(1000), busy))
    const run = await ended(client(), id)
    assert.equal(run.status, 'failed')
    assert.equal(run.error?.code, 'RUN_TIMED_OUT')
  })

  test(`${mode}: the time from its creation on ends a run that waits`, async () => {
    const slug = `wall-${mode}`
    await durable.interpreter({ slug, pool: mode, timeout: { wall: '3s' } })
    const id = await begin(durable, slug, ast.concluded(ast.sleep(HOUR_MS), 'tidied'))
    await rests(durable, mode, id, 'sleeping')
    const run = await ended(client(), id)
    assert.equal(run.status, 'failed')
    assert.equal(run.error?.code, 'RUN_TIMED_OUT')
    assert.ok(run.finishedAt! - run.createdAt >= 3000)
    assert.deepEqual(textsOf(await wholeLog(client(), id)), mode === 'parked' ? ['tidied TimedOutError'] : [])
  })
}

test('a cancel reaches a run that is queued', async () => {
  await nobodyServes('nobody')
  const id = await begin(durable, 'nobody', ast.step('a'))
  const { run } = await client().runs.cancel({ run: id })
  assert.equal(run.status, 'cancelled')
  assert.deepEqual(typesOf(await wholeLog(client(), id)), ['run.queued', 'run.cancelling', 'run.cancelled'])
})

test('a cancel reaches a run that is pending', async () => {
  const agent = await durable.join({ name: 'frozen', pool: 'frozen' })
  await durable.interpreter({ slug: 'frozen', pool: 'frozen' })
  await ended(client(), await begin(durable, 'frozen', ast.step('it asks for work')))
  agent.process().child.kill('SIGSTOP')
  try {
    const id = await begin(durable, 'frozen', ast.step('a'))
    await isNow(client(), id, 'pending')
    await client().runs.cancel({ run: id })
    assert.equal((await ended(client(), id)).status, 'cancelled')
  } finally {
    agent.process().child.kill('SIGCONT')
  }
})

test('a cancel reaches a run that computes, and its waits beside', async () => {
  const program = ast.concluded(ast.all(ast.gate(`${folder()}/never`), ast.ask('beside')), 'tidied')
  const id = await begin(durable, 'parked', ast.seq(ast.log('begun'), program))
  await hasSaid(client(), id, 'log.stdout', 'begun')
  await isNow(client(), id, 'running')
  await questionsOf(client(), id)
  await client().runs.cancel({ run: id })
  assert.deepEqual(await isCancelled(id), ['begun', 'tidied CancelledError'])
})

test('a cancel reaches a run that is being replayed', async () => {
  const slow = ast.seq(ast.log('begun'), ast.delay(3000), ast.ask('replaying'), ast.log('never'))
  const id = await begin(durable, 'replayed', slow)
  await rests(durable, 'replayed', id, 'awaiting_input')
  const [input] = await questionsOf(client(), id)
  await client().inputs.respond({ input: input!.id, answer: 1 })
  const { db } = durable.database()
  const look = async () => (await db<{ place: string | null }[]>`select place from runs where id = ${id}`)[0]?.place
  await until(`${id} to be replayed`, async () => (await look()) === 'replaying')
  await client().runs.cancel({ run: id })
  assert.deepEqual(await isCancelled(id), ['begun'])
})

test('the time in the queue ends a run that nobody takes', async () => {
  await nobodyServes('queue-time', { timeout: { queue: '1s' } })
  const run = await ended(client(), await begin(durable, 'queue-time', ast.step('a')))
  assert.equal(run.status, 'failed')
  assert.equal(run.error?.code, 'RUN_TIMED_OUT')
})

test('the time from its creation on ends a run that nobody takes, or that nobody goes on with', async () => {
  await nobodyServes('wall-queued', { timeout: { wall: '1s' } })
  const queued = await ended(client(), await begin(durable, 'wall-queued', ast.step('a')))
  assert.equal(queued.error?.code, 'RUN_TIMED_OUT')

  const pool = 'wall-left'
  const agent = await durable.join({ name: pool, pool, env: ALWAYS_REPLAY })
  await durable.interpreter({ slug: pool, pool, timeout: { wall: '20s' } })
  const id = await begin(durable, pool, ast.ask('left'))
  await isNow(client(), id, 'awaiting_input')
  await isEvicted(durable, id)
  await agent.stop()
  const [input] = await questionsOf(client(), id)
  await client().inputs.respond({ input: input!.id, answer: 1 })
  const left = await ended(client(), id)
  assert.equal(left.status, 'failed')
  assert.equal(left.error?.code, 'RUN_TIMED_OUT')
})

async function nobodyServes(slug: string, descriptor: object = {}): Promise<void> {
  await ensurePool(client(), slug)
  await durable.interpreter({ slug, pool: slug, ...descriptor })
}

test('the whole tree of a run that is cancelled is gone, wherever its members are', async () => {
  const inner = (mode: Mode) => ast.child(ast.ask(mode), mode)
  const id = await begin(durable, 'parked', ast.all(inner('parked'), inner('replayed'), inner('parked')))
  const look = async () => {
    const { runs } = await client().runs.children({ run: id })
    return runs.length === 3 && runs.every(({ status }) => status === 'awaiting_input') && runs
  }
  const children = await until('three children that wait', look)
  await client().runs.cancel({ run: id })
  for (const each of [id, ...children.map((run) => run.id)]) await isCancelled(each)
})
