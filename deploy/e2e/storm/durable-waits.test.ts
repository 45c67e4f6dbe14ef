// What a program waits for reaches it, once, whatever happens to its process meanwhile.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as wait } from 'node:timers/promises'
import type { Node } from '../programs/durable/interpreter/ast.ts'
import * as ast from '../_kit/ast.ts'
import {
  ALWAYS_REPLAY,
  begin,
  durableInstance,
  type Mode,
  MODES,
  outputOf,
  questionsOf,
  rests,
} from '../_kit/durable.ts'
import { respond, responder } from '../_kit/responder.ts'
import { ended, get, textsOf, wholeLog } from '../_kit/runs.ts'
import { chosenSeed, randomOf } from '@windlass/shared/test/_kit/seed.ts'
import { notesOf, wrongIn } from '../_kit/story.ts'
import { DEADLINE_MS } from '../_kit/until.ts'

/** In each of the two modes. */
const MANY = 50
const durable = durableInstance({})
const seed = chosenSeed()
const random = randomOf(seed)

/** Against an endless wait only: 24 runs that wait 12 times took 122 s beside three other storms, 40 s alone. */
const LONGEST_MS = 5 * DEADLINE_MS

/** Fails with everything that is known about a run that did not go as it had to. */
async function tellsTheStory(id: string, key: string, program: Node): Promise<void> {
  const client = durable.client()
  const run = await ended(client, id, LONGEST_MS)
  const [output, events] = await Promise.all([outputOf(client, id), wholeLog(client, id)])
  const notes = notesOf(durable.folder(), key)
  assert.deepEqual(wrongIn({ program, run, output, events, notes, kills: 0 }), [], `seed ${seed}, ${id}`)
}

/** At once: each has an agent of its own. Neither is left behind when the other fails. */
function inBothModes(name: string, act: (mode: Mode) => Promise<void>): void {
  test(name, async () => {
    const ends = await Promise.allSettled(MODES.map((mode) => act(mode)))
    const [failure, ...more] = ends.flatMap((end, n) =>
      end.status === 'rejected' ? [new Error(`${MODES[n]}: ${String(end.reason)}`, { cause: end.reason })] : [],
    )
    if (more.length > 0) throw new AggregateError([failure, ...more], name)
    if (failure) throw failure
  })
}

inBothModes('sleeps, questions, calls and steps give what they gave, each step executed once', async (mode) => {
  const answering = responder(durable.client(), random)
  const program = ast.seq(
    ast.step('first', { json: { a: [1, null] } }),
    { op: 'step', name: 'date', value: { is: 'date', ms: 12 } },
    { op: 'step', name: 'map', value: { is: 'map', entries: [['a', 1]] } },
    { op: 'step', name: 'big', value: { is: 'bigint', digits: '12345678901234567890' } },
    ast.sleep(5),
    ast.sleep(1000),
    ast.asked('basics', { yes: true }),
    ast.step('second', { inside: ast.seq(ast.step('within'), ast.asked('basics', 'inner'), ast.log('in a step')) }),
    ast.child(ast.seq(ast.step('of the child'), ast.asked('basics', 1))),
    ast.caught(ast.step('fails', { fails: 'no' })),
    ast.caught(ast.child(ast.seq(ast.sleep(1000), ast.fail('child is gone')))),
    { op: 'input', question: { key: 'basics' }, timeoutMs: 300, onTimeout: 'nobody' },
    ast.caught({ op: 'input', question: { key: 'basics' }, timeoutMs: 300 }),
    ast.all(ast.sleep(1200), ast.step('beside'), ast.asked('basics', 2), ast.child(ast.sleep(1000))),
  )
  const id = await begin(durable, mode, program, `basics-${mode}`)
  const run = await ended(durable.client(), id)
  await answering.stop()
  assert.equal(run.status, 'completed', run.error?.message)
  const values = (await outputOf(durable.client(), id)) as unknown[]
  const timedOut = values[12] as { caught: string }
  assert.match(timedOut.caught, /^InputTimedOutError: /)
  assert.deepEqual(values.toSpliced(12, 1), [
    { a: [1, null] },
    'date 12',
    'map [["a",1]]',
    'bigint 12345678901234567890',
    'slept',
    'slept',
    { yes: true },
    ['within', 'inner', 'logged'],
    ['of the child', 1],
    { caught: 'Error: no' },
    { caught: 'RunFailedError: child is gone' },
    'nobody',
    ['slept', 'beside', 2, 'slept'],
  ])
  const steps = notesOf(durable.folder(), `basics-${mode}`).filter(({ what }) => what === 'step')
  const once = steps.filter(({ path }) => path !== '/7').map(({ path }) => path)
  assert.equal(new Set(once).size, once.length, once.join(' '))
  assert.equal(run.attempt, 1)
})

inBothModes('a race of two waits that were both over before it went on keeps its winner', async (mode) => {
  const client = durable.client()
  const question = ast.ask('race')
  const other = ast.seq(ast.sleep(1), ast.ask('race other'))
  const program = ast.seq(ast.race(question, other), ast.sleep(1000), ast.step('after'))
  const runs: { id: string; key: string; first: number }[] = []
  for (let n = 0; n < MANY; n++) {
    const key = `race-${mode}-${n}`
    runs.push({ id: await begin(durable, mode, program, key), key, first: n % 2 })
  }
  for (const { id } of runs) await questionsOf(client, id, 2)
  // One that still computes as its agent stops begins anew, and asks the second question after it has the first answer.
  for (const { id } of runs) await rests(durable, mode, id, 'awaiting_input')
  // Nobody can go on while the answers come in.
  await durable.agent(mode).stop()
  for (const { id, first } of runs) {
    const questions = await questionsOf(client, id, 2)
    const [others, ones] = ['race other', 'race'].map((key) =>
      questions.filter(({ prompt }) => (JSON.parse(prompt) as { key: string }).key === key),
    )
    const [other, one] = [others![0]!, ones![0]!]
    const order = first === 0 ? [one, other] : [other, one]
    for (const [index, { id: input }] of order.entries()) assert.ok(await respond(client, input, `answer ${index}`))
  }
  await durable.agent(mode).start()
  for (const { id, key, first } of runs) await tellsTheRace(id, key, first)
})

inBothModes('an answer wakes its run at whatever moment of parking it comes', async (mode) => {
  const answers = 12
  const program = ast.seq(
    ...Array.from({ length: answers }, (_, n) => ast.seq(ast.asked('moments', n), ast.step(`took ${n}`))),
  )
  const answering = responder(durable.client(), random)
  const keys = Array.from({ length: 12 }, (_, n) => `moments-${mode}-${n}`)
  const ids = await Promise.all(keys.map((key) => begin(durable, mode, program, key)))
  for (const [index, id] of ids.entries()) await tellsTheStory(id, keys[index]!, program)
  await answering.stop()
})

inBothModes('the end of a child and the end of a timeout wake their run at whatever moment they come', async (mode) => {
  const pair = (n: number) => [ast.child(ast.delay(n % 30)), inTime(n)]
  const program = ast.seq(...Array.from({ length: 6 }, (_, n) => ast.seq(...pair(n * 5))))
  const keys = Array.from({ length: 8 }, (_, n) => `ends-${mode}-${n}`)
  const ids = await Promise.all(keys.map((key) => begin(durable, mode, program, key)))
  for (const [index, id] of ids.entries()) await tellsTheStory(id, keys[index]!, program)
})

inBothModes('an answer races with the timeout of its question, and one of the two counts', async (mode) => {
  const client = durable.client()
  const ids = await Promise.all(
    Array.from({ length: 20 }, () => begin(durable, mode, ast.ask('late', { timeoutMs: 3000, onTimeout: 'time' }))),
  )
  const answered = await Promise.all(
    ids.map(async (id) => {
      const [input] = await questionsOf(client, id)
      await wait(Math.max(0, input!.dueAt! - Date.now() - 15 + random.between(0, 30)))
      return client.inputs.respond({ input: input!.id, answer: 'person' }).then(
        () => true,
        () => false,
      )
    }),
  )
  for (const [index, id] of ids.entries()) {
    await ended(client, id)
    assert.equal(await outputOf(client, id), answered[index] ? 'person' : 'time', id)
  }
})

inBothModes('a chain of ten calls completes on one slot', async (mode) => {
  const pool = `narrow-${mode}`
  await durable.join({ name: pool, pool, slots: 1, env: mode === 'replayed' ? ALWAYS_REPLAY : {} })
  await durable.interpreter({ slug: pool, pool })
  let program = ast.seq(ast.step('deepest'))
  for (let depth = 0; depth < 10; depth++) program = ast.child(ast.seq(ast.step(`at ${depth}`), program))
  const id = await begin(durable, pool, program, `chain-${mode}`)
  await tellsTheStory(id, `chain-${mode}`, program)
})

inBothModes('a run that sleeps says what it waits for, and answers that are wrong do not wake it', async (mode) => {
  const client = durable.client()
  const schema = { type: 'object', properties: { n: { type: 'integer' } }, required: ['n'] }
  const id = await begin(durable, mode, ast.ask('strict', { schema }))
  await rests(durable, mode, id, 'awaiting_input')
  const [input] = await questionsOf(client, id)
  assert.equal((await get(client, id)).waiting?.inputId, input!.id)
  await assert.rejects(client.inputs.respond({ input: input!.id, answer: { n: 'one' } }), {
    code: 'VALIDATION_FAILED',
  })
  assert.equal((await get(client, id)).status, 'awaiting_input')
  await client.inputs.respond({ input: input!.id, answer: { n: 1 } })
  assert.equal((await ended(client, id)).status, 'completed')
  assert.deepEqual(await outputOf(client, id), { n: 1 })
  await assert.rejects(client.inputs.respond({ input: input!.id, answer: { n: 2 } }), {
    code: 'INPUT_CLOSED',
    status: 409,
  })
})

inBothModes('steps in which something short is waited for open and close at once, many times over', async (mode) => {
  const short = (n: number) => ast.step('short', { inside: ast.sleep(1 + (n % 3)) })
  const program = ast.seq(...Array.from({ length: 60 }, (_, n) => short(n)), ast.sleep(1000))
  await tellsTheStory(await begin(durable, mode, program, `short-${mode}`), `short-${mode}`, program)
})

test('what a program writes is byte for byte the same in both modes, lines that were begun before a wait too', async () => {
  const client = durable.client()
  const answering = responder(client, random)
  const part = (n: number) => [
    ast.log(`line ${n}`),
    ast.write(`begun ${n} `),
    ast.asked('bytes', n),
    ast.write('– ended\nnext '),
  ]
  const program = ast.seq(...[1, 2, 3].flatMap(part), ast.sleep(1000), ast.log('last'), ast.write('no newline'))
  const logs = await Promise.all(
    MODES.map(async (mode) => {
      const id = await begin(durable, mode, program)
      assert.equal((await ended(client, id)).status, 'completed')
      return textsOf(await wholeLog(client, id))
    }),
  )
  await answering.stop()
  assert.deepEqual(logs[0], [
    'line 1',
    'begun 1 – ended',
    'next line 2',
    'begun 2 – ended',
    'next line 3',
    'begun 3 – ended',
    'next last',
    'no newline',
  ])
  assert.deepEqual(logs[1], logs[0])
})

function inTime(n: number): Node {
  return { op: 'input', question: { key: 'ends' }, timeoutMs: 1 + n, onTimeout: n }
}

async function tellsTheRace(id: string, key: string, first: number): Promise<void> {
  const run = await ended(durable.client(), id, 2 * DEADLINE_MS)
  assert.equal(run.status, 'completed', run.error?.message)
  const [raced] = (await outputOf(durable.client(), id)) as [{ winner: number; value: unknown }]
  const expected = first === 0 ? { winner: 0, value: 'answer 0' } : { winner: 1, value: ['slept', 'answer 0'] }
  assert.deepEqual(raced, expected, id)
  const winners = notesOf(durable.folder(), key).flatMap(({ what, winner }) => (what === 'race' ? [winner] : []))
  assert.ok(winners.length > 0 && winners.every((winner) => winner === first), `${id}: ${winners.join(', ')}`)
}
