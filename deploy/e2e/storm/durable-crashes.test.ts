// Processes, agents and the way to them are lost, and the run goes on.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as ast from '../_kit/ast.ts'
import { begin, durableInstance, isEvicted, isNow, MODES, outputOf, questionsOf } from '../_kit/durable.ts'
import { patiently, responder } from '../_kit/responder.ts'
import { randomOf } from '@windlass/shared/test/_kit/seed.ts'
import { ended, get, hasSaid, textsOf, wholeLog } from '../_kit/runs.ts'
import { notesOf } from '../_kit/story.ts'
import { until } from '../_kit/until.ts'

/** Nobody is lost here that does not come back: a coordinator that starts slowly on a busy machine costs no attempt. */
const PATIENT = { WINDLASS_FENCE_MS: '60000', WINDLASS_LEASE_MS: '70000' }

const durable = durableInstance({ env: PATIENT })
const { folder, client } = durable

const QUESTIONS = 4
/** Says something before, in and after each suspension. */
const TALKATIVE = ast.seq(
  ...Array.from({ length: QUESTIONS }, (_, n) =>
    ast.seq(
      ast.log(`before ${n}`),
      ast.step(`step ${n}`, { takesMs: 5 }),
      ast.write(`asks ${n} `),
      ast.all(ast.ask(`q${n}`), ast.sleep(10)),
      ast.write('and has it\n'),
    ),
  ),
  ast.write('the end'),
)
const LOG = [...Array.from({ length: QUESTIONS }, (_, n) => [`before ${n}`, `asks ${n} and has it`]).flat(), 'the end']

/** Answers each question of the run after `disturb` has had its way with it. */
async function answerAll(id: string, disturb: (n: number) => Promise<void>): Promise<void> {
  for (let n = 0; n < QUESTIONS; n++) {
    const [input] = await questionOf(id, n)
    await isNow(client(), id, 'awaiting_input')
    await disturb(n)
    await client().inputs.respond({ input: input!.id, answer: n })
  }
}

function questionOf(id: string, n: number) {
  const look = async () => {
    const open = await questionsOf(client(), id)
    return open.some(({ prompt }) => prompt.includes(`"q${n}"`)) && open
  }
  return until(`question ${n} of ${id}`, look)
}

async function isWhole(id: string, key: string, { mayCrash = false } = {}): Promise<void> {
  const run = await ended(client(), id)
  assert.equal(run.status, 'completed', run.error?.message)
  if (!mayCrash) assert.equal(run.attempt, 1)
  const events = await wholeLog(client(), id)
  assert.deepEqual(textsOf(events.slice(events.findLastIndex(({ type }) => type === 'run.restarted') + 1)), LOG)
  const steps = stepsOf(key)
  assert.equal(steps.length, QUESTIONS, steps.join(' '))
}

function stepsOf(key: string): string[] {
  return notesOf(folder(), key).flatMap(({ what, path }) => (what === 'step' ? [path] : []))
}

function pidOf(key: string): number {
  return notesOf(folder(), key).at(-1)!.pid
}

test('kill -9 of the process at every suspension: nothing is written or executed twice', async () => {
  const id = await begin(durable, 'parked', TALKATIVE, 'process')
  await answerAll(id, async () => {
    const pid = pidOf('process')
    process.kill(pid, 'SIGKILL')
    await isEvicted(durable, id)
  })
  await isWhole(id, 'process')
})

test('kill -9 of the process while its answer comes: nothing is written or executed twice', async () => {
  const ids = Array.from({ length: 10 }, (_, n) => `while-${n}`)
  await Promise.all(
    ids.map(async (key) => {
      const id = await begin(durable, 'parked', TALKATIVE, key)
      await answerAll(id, async () => void process.kill(pidOf(key), 'SIGKILL'))
      // Where the agent hands over the answer before it hears of the death, it was a program at work that died.
      await isWhole(id, key, { mayCrash: true })
    }),
  )
})

test('kill -9 of the agent at every suspension: nothing is written or executed twice', async () => {
  const agent = await durable.join({ name: 'mortal', pool: 'mortal' })
  await durable.interpreter({ slug: 'mortal', pool: 'mortal' })
  const id = await begin(durable, 'mortal', TALKATIVE, 'agent')
  await answerAll(id, async () => {
    await agent.kill()
    await agent.start()
  })
  await isWhole(id, 'agent')
})

test('kill -9 of the coordinator while runs wait: timers, answers and children still wake them', async () => {
  const ways = {
    sleep: ast.sleep(2000),
    time: ast.ask('time', { timeoutMs: 2000, onTimeout: 1 }),
    child: ast.child(ast.sleep(2000)),
  }
  const kinds = Object.entries(ways).flatMap(([kind, wait]) =>
    MODES.map((mode) => ({ mode, key: `restart-${kind}-${mode}`, wait })),
  )
  const ids = await Promise.all(
    kinds.map(({ mode, key, wait }) =>
      begin(durable, mode, ast.seq(ast.step('once'), ast.log('waits'), wait, ast.log('goes on')), key),
    ),
  )
  await Promise.all(ids.map((id) => hasSaid(client(), id, 'log.stdout', 'waits')))
  process.kill((await durable.current().pidOf('coordinator'))!, 'SIGKILL')
  await until('the coordinator to be back', () => patiently(async () => (await get(client(), ids[0]!)).id))
  for (const [index, id] of ids.entries()) {
    const run = await ended(client(), id)
    assert.equal(run.status, 'completed', run.error?.message)
    assert.equal(run.attempt, 1)
    assert.deepEqual(textsOf(await wholeLog(client(), id)), ['waits', 'goes on'])
    assert.equal(stepsOf(kinds[index]!.key).length, 1)
  }
})

test('without a disturbance it writes the same', async () => {
  for (const mode of MODES) {
    const id = await begin(durable, mode, TALKATIVE, `calm-${mode}`)
    await answerAll(id, () => Promise.resolve())
    await isWhole(id, `calm-${mode}`)
  }
})

for (const mode of MODES) {
  test(`${mode}: after a crash the program starts again with what it already has`, async () => {
    const key = `crash-${mode}`
    const program = ast.seq(
      ast.step('bought'),
      ast.ask('crash'),
      ast.child(ast.step('of the child')),
      ast.sleep(1000),
      ast.caught(ast.step('fails', { fails: 'again' })),
      ast.crash(2),
      ast.step('after'),
      ast.attempt,
    )
    const id = await begin(durable, mode, program, key)
    const [input] = await questionsOf(client(), id)
    await client().inputs.respond({ input: input!.id, answer: 'kept' })
    const run = await ended(client(), id)
    assert.equal(run.status, 'completed', run.error?.message)
    assert.equal(run.attempt, 3)
    const values = (await outputOf(client(), id)) as unknown[]
    assert.deepEqual(values.toSpliced(5, 1), [
      'bought',
      'kept',
      'of the child',
      'slept',
      { caught: 'Error: again' },
      'after',
      3,
    ])
    // What has failed is tried again.
    assert.deepEqual(stepsOf(key), ['/0', '/2/c', '/4/b', '/4/b', '/4/b', '/6'])
    const { inputs } = await client().inputs.list({ run: id, status: ['open', 'answered', 'timed_out', 'closed'] })
    assert.equal(inputs.length, 1)
    assert.equal((await client().runs.children({ run: id })).runs.length, 1)
  })
}

for (const mode of MODES) {
  test(`${mode}: after a crash a call that had failed is made again`, async () => {
    const program = ast.seq(
      ast.caught(ast.child(ast.seq(ast.asked('again', 1), ast.fail('no')))),
      ast.crash(),
      ast.step('after'),
    )
    const answering = responder(client(), randomOf(1))
    const id = await begin(durable, mode, program)
    const run = await ended(client(), id)
    await answering.stop()
    assert.equal(run.status, 'completed', run.error?.message)
    assert.equal(run.attempt, 2)
    assert.equal((await client().runs.children({ run: id })).runs.length, 2)
  })
}

test('with retries.onCrash "fresh" it has nothing', async () => {
  await durable.interpreter({ slug: 'fresh-start', pool: 'parked', retries: { crash: 3, onCrash: 'fresh' } })
  const id = await begin(durable, 'fresh-start', ast.seq(ast.step('a'), ast.crash(), ast.attempt), 'fresh')
  assert.equal((await ended(client(), id)).attempt, 2)
  assert.deepEqual(stepsOf('fresh'), ['/0', '/0'])

  // The numbers of the forgotten entries are not taken again: what it gets from now on is kept.
  await durable.interpreter({ slug: 'fresh-replay', pool: 'replayed', retries: { crash: 3, onCrash: 'fresh' } })
  const program = ast.seq(ast.step('a'), ast.sleep(1000), ast.crash(), ast.step('b'), ast.sleep(1000), ast.step('c'))
  const other = await begin(durable, 'fresh-replay', program, 'fresh-replay')
  assert.equal((await ended(client(), other)).status, 'completed')
  assert.deepEqual(stepsOf('fresh-replay'), ['/0', '/0', '/3', '/5'])
})

test('crashes beyond retries.crash fail the run with RUN_CRASHED', async () => {
  await durable.interpreter({ slug: 'crashes', pool: 'parked', retries: { crash: 1 } })
  const run = await ended(client(), await begin(durable, 'crashes', ast.seq(ast.step('a'), ast.crash(9)), 'crashes'))
  assert.equal(run.status, 'failed')
  assert.equal(run.error?.code, 'RUN_CRASHED')
  assert.equal(run.attempt, 2)
  assert.deepEqual(stepsOf('crashes'), ['/0'])
})

test('a run that throws is tried again where retries.error says so, and keeps its steps', async () => {
  const retries = { error: { max: 2, delay: '100ms' } }
  await durable.interpreter({ slug: 'throws', pool: 'parked', retries })
  const id = await begin(
    durable,
    'throws',
    ast.seq(ast.step('a'), ast.sleep(1000), ast.fail('no', 2), ast.attempt),
    'throws',
  )
  const run = await ended(client(), id)
  assert.equal(run.status, 'completed', run.error?.message)
  assert.equal(run.attempt, 3)
  assert.deepEqual(stepsOf('throws'), ['/0'])

  const failed = await ended(client(), await begin(durable, 'throws', ast.fail('never')))
  assert.equal(failed.status, 'failed')
  assert.match(failed.error!.message, /never/)
  assert.equal(failed.attempt, 3)
})

test('SIGTERM of an agent with parked runs: another one continues them', async () => {
  const leaving = await durable.join({ name: 'leaving', pool: 'pair' })
  await durable.interpreter({ slug: 'pair', pool: 'pair' })
  const program = ast.seq(ast.step('once'), ast.log('asked'), ast.ask('pair'), ast.log('answered'))
  const keys = Array.from({ length: 8 }, (_, n) => `pair-${n}`)
  const ids = await Promise.all(keys.map((key) => begin(durable, 'pair', program, key)))
  await Promise.all(ids.map((id) => isNow(client(), id, 'awaiting_input')))
  await durable.join({ name: 'staying', pool: 'pair' })
  await leaving.stop()
  for (const [index, id] of ids.entries()) {
    assert.equal((await get(client(), id)).status, 'awaiting_input')
    const [input] = await questionsOf(client(), id)
    await client().inputs.respond({ input: input!.id, answer: 1 })
    const run = await ended(client(), id)
    assert.equal(run.attempt, 1)
    assert.equal(run.runner?.name, 'staying')
    assert.deepEqual(textsOf(await wholeLog(client(), id)), ['asked', 'answered'])
    assert.deepEqual(stepsOf(keys[index]!), ['/0'])
  }
})
