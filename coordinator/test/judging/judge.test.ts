import assert from 'node:assert/strict'
import { after, test, type TestContext } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import { onMoment } from '@windlass/shared/probe.ts'
import { createBudget } from '../../judging/budget.ts'
import { createJudge, type JudgeAsk, type Verdict } from '../../judging/judge.ts'
import { type Schema, schemaOf } from '../../judging/schema.ts'
import type { JsonSchema } from '../../workflows/json-schema.ts'

const log = createLog({ process: 'test' }, 'error')
const judge = createJudge({ log })
after(() => judge.close())

/** Kills the processes that reach the moment, as many as that; counts those that are started. */
function killing(t: TestContext, most: number, at: 'tools.started' | 'tools.step' = 'tools.started') {
  let left = most
  let started = 0
  const stop = onMoment((moment) => {
    if (moment.name === 'tools.started') started++
    if (moment.name === at && left-- > 0) process.kill(moment.facts.pid, 'SIGKILL')
  })
  t.after(stop)
  return { started: () => started, stop }
}

const derived = (schema: JsonSchema) => schemaOf('derived', schema)
const written = (schema: JsonSchema | boolean) => schemaOf('written', schema)

async function said(schema: Schema | undefined, value: unknown, ask: Partial<JudgeAsk> = {}): Promise<string> {
  const verdict = await judge.judge(schema, { text: JSON.stringify(value) }, { root: 'input', org: 'a', ...ask })
  return textOf(verdict)
}

function textOf(verdict: Verdict): string {
  return verdict.is === 'fits' ? 'fits' : `${verdict.is} ${verdict.invalid.path}: ${verdict.invalid.message}`
}

/** A rule is a group of rules, and a wrong leaf at the bottom costs ten times as much with each two levels. */
const RULES: JsonSchema = {
  $ref: '#/$defs/Group',
  $defs: {
    Group: {
      type: 'object',
      properties: { next: { anyOf: [{ $ref: '#/$defs/Group' }, { $ref: '#/$defs/Rule' }] }, value: { type: 'string' } },
    },
    Rule: {
      type: 'object',
      properties: { next: { anyOf: [{ $ref: '#/$defs/Group' }, { $ref: '#/$defs/Rule' }] }, value: { type: 'string' } },
    },
  },
}
const wrongLeaf = (levels: number): unknown => (levels === 0 ? { value: 5 } : { next: wrongLeaf(levels - 1) })
const HANGS = JSON.stringify({ a: `${'a'.repeat(60)}b` })
const PATTERN: JsonSchema = { type: 'object', properties: { a: { type: 'string', pattern: '^(a|a)*$' } } }

test('a simple schema needs no process, and neither does one that accepts everything', async (t) => {
  const own = createJudge({ log })
  t.after(() => own.close())
  const ask = { root: 'input', org: 'a' }
  const schema = derived({ type: 'object', properties: { n: { type: 'number' } }, required: ['n'] })
  assert.equal(textOf(await own.judge(schema, { text: '{"n":1}' }, ask)), 'fits')
  assert.equal(textOf(await own.judge(schema, { text: '{}', parsed: {} }, ask)), 'misfit input.n: is required')
  assert.equal(textOf(await own.judge(undefined, { text: '"x"' }, ask)), 'fits')
  assert.equal(textOf(await own.tryOut(schema, ask)), 'fits')
  assert.equal(own.awake(), 0)
})

test('the same is said of a value by a process as without one', async () => {
  const schema = {
    type: 'object',
    properties: { list: { type: 'array', items: { type: 'integer' } } },
  } satisfies JsonSchema
  for (const value of [{ list: [1] }, { list: [1, 'x'] }, 5])
    assert.equal(await said(written(schema), value), await said(derived(schema), value))
})

test('a large value of a schema with many ways is judged by a process', async (t) => {
  const own = createJudge({ log })
  t.after(() => own.close())
  const schema = derived({ type: 'array', items: { enum: Array.from({ length: 500 }, (_, n) => n) } })
  const text = JSON.stringify(Array.from({ length: 1000 }, (_, n) => n % 500))
  assert.equal(textOf(await own.judge(schema, { text }, { root: 'input', org: 'a' })), 'fits')
  assert.equal(own.awake(), 1)
})

test('a value that would take longer than the machine lasts is refused, and the next is judged', async () => {
  const schema = derived(RULES)
  assert.equal(await said(schema, wrongLeaf(3)), 'misfit input.next.next.next.value: must be a string, but is a number')
  assert.match(await said(schema, wrongLeaf(40)), /^too slow input: takes longer than 250 ms to be checked/)
  assert.equal(await said(schema, { next: { value: 'x' } }), 'fits')
  assert.match(await said(derived(PATTERN), { a: `${'a'.repeat(60)}b` }), /^too slow input: .*simplify `@pattern`/)
  assert.equal(await said(derived(PATTERN), { a: 'aaa' }), 'fits')
})

test('what eats memory or time is given up, and the next is judged', async () => {
  // No schema of that size is taken; read it has 20 times as much.
  const huge = { origin: 'derived', key: 'huge', text: `[${'{},'.repeat(10_000_000)}1]`, paths: undefined } as const
  const verdict = await judge.tryOut(huge, { org: 'a' })
  assert.match(textOf(verdict), /^unusable : its schema takes too much (memory|time) to compile/)
  assert.equal(await said(written({ type: 'string' }), 'x'), 'fits')
})

for (const [killed, outcome] of [
  [1, /^fits$/],
  [2, /^unusable input: its schema was given up: two processes in a row ended \(SIGKILL\) while they compiled it/],
] as const)
  for (const run of [undefined, 'run_1'])
    test(`what ${killed} process(es) of ${run ?? 'no run'} died of is tried again once`, async (t) => {
      const own = createJudge({ log })
      t.after(() => own.close())
      const { started } = killing(t, killed)
      const ask = { root: 'input', org: 'a', ...(run !== undefined && { run }) }
      assert.match(textOf(await own.judge(written({ type: 'string' }), { text: '"x"' }, ask)), outcome)
      assert.equal(started(), 2)
      assert.equal(
        textOf(await own.judge(written({ type: 'number' }), { text: '1' }, { ...ask, run: 'run_2' })),
        'fits',
      )
    })

test('a job that is tried again has a process that no other org has used', async (t) => {
  const own = createJudge({ log })
  t.after(() => own.close())
  const judged = async (org: string, schema: Schema | undefined, text: string) =>
    textOf(await own.judge(schema, { text }, { root: 'input', org }))
  await Promise.all([judged('b', written({ minLength: 1 }), '"x"'), judged('c', written({ maxLength: 1 }), '"x"')])
  assert.equal(own.awake(), 2)
  const { started } = killing(t, 1, 'tools.step')
  assert.match(await judged('a', derived(PATTERN), HANGS), /^too slow input: takes longer than 250 ms/)
  assert.equal(started(), 1)
})

test('a run whose schemas kill each process has two processes a minute, and costs no other run', async (t) => {
  const own = createJudge({ log })
  t.after(() => own.close())
  const { started, stop } = killing(t, Infinity)
  const judged = async (n: number, run: string) =>
    textOf(await own.judge(written({ type: 'string', maxLength: n }), { text: '""' }, { root: 'input', org: 'a', run }))
  assert.match(await judged(0, 'run_1'), /^unusable input: /)
  for (let n = 1; n <= 20; n++)
    assert.match(await judged(n, 'run_1'), /^spent input: .*used up their 2000 ms of checking within a minute/)
  assert.equal(started(), 2)
  stop()
  assert.equal(await judged(1, 'run_2'), 'fits')
})

test('an input that took too long is not tried again at once', async (t) => {
  const own = createJudge({ log })
  t.after(() => own.close())
  const { started } = killing(t, 0)
  const judged = async (ask: Partial<JudgeAsk> = {}) =>
    textOf(await own.judge(derived(PATTERN), { text: HANGS }, { root: 'input', org: 'a', ...ask }))
  const first = await judged()
  assert.match(first, /^too slow input: takes longer than 250 ms/)
  const before = started()
  assert.equal(await judged(), first)
  assert.equal(started(), before)
  assert.match(await judged({ run: 'run_1' }), /^too slow input/, 'a run pays for its own')
  assert.ok(started() > before)
})

test('a run whose values kill each process has eight processes a minute', async (t) => {
  const own = createJudge({ log })
  t.after(() => own.close())
  const { started } = killing(t, Infinity, 'tools.step')
  const judged = async () =>
    textOf(await own.judge(derived(PATTERN), { text: HANGS }, { root: 'input', org: 'a', run: 'run_1' }))
  for (let n = 0; n < 4; n++)
    assert.match(await judged(), /^too slow input: cannot be checked: two processes in a row ended \(SIGKILL\)/)
  for (let n = 0; n < 20; n++) assert.match(await judged(), /^spent input: /)
  assert.equal(started(), 8)
})

test('a schema that is none, or takes too long to compile, is told from a value that does not fit', async () => {
  for (const schema of [{ type: 'nonsense' }, { $ref: '#/no' }, { pattern: '(' }, { properties: 5 }])
    assert.match(await said(written(schema), 1), /^unusable input: /, JSON.stringify(schema))
  assert.match(await said(written({ $ref: '#' }), 1), /^(unusable|misfit) /)
  const doubled = Object.fromEntries(
    Array.from({ length: 60 }, (_, n) => [`d${n}`, { allOf: [1, 2].map(() => ({ $ref: `#/$defs/d${n + 1}` })) }]),
  )
  const bomb = written({ $ref: '#/$defs/d0', $defs: { ...doubled, d60: true } })
  assert.match(textOf(await judge.tryOut(bomb, { org: 'a' })), /^unusable : its schema takes too much time to compile/)
})

test('a run has two seconds a minute, of its own', async () => {
  let now = 0
  const budget = createBudget({ ms: 2000, windowMs: 60_000 }, () => now)
  for (let n = 0; n < 8; n++) {
    assert.equal(budget.hasLeft('run_1'), true)
    budget.spend('run_1', 250)
    now += 1000
  }
  assert.deepEqual([budget.hasLeft('run_1'), budget.hasLeft('run_2')], [false, true])
  now = 59_999
  assert.equal(budget.hasLeft('run_1'), false)
  now = 60_000
  assert.equal(budget.hasLeft('run_1'), true)
})

test('values of a run that hang use up its time, and cost no other run', async (t) => {
  const own = createJudge({ log, runMs: 500 })
  t.after(() => own.close())
  const judged = async (schema: Schema | undefined, value: unknown, ask: Partial<JudgeAsk>) =>
    textOf(await own.judge(schema, { text: JSON.stringify(value) }, { root: 'input', org: 'a', ...ask }))
  const slow = derived(PATTERN)
  const hang = { a: `${'a'.repeat(60)}b` }
  for (let n = 0; n < 2; n++) assert.match(await judged(slow, hang, { run: 'run_1' }), /^too slow input/)
  for (const value of [hang, { a: 'a' }])
    assert.match(
      await judged(slow, value, { run: 'run_1' }),
      /^spent input: .*used up their 500 ms of checking within a minute/,
    )
  assert.equal(await judged(slow, { a: 'a' }, { run: 'run_2' }), 'fits')
  assert.equal(await judged(slow, { a: 'a' }, { run: 'run_1', org: 'b' }), 'fits')
  // What needs no process costs a run nothing.
  assert.equal(await judged(derived({ type: 'string' }), 'x', { run: 'run_1' }), 'fits')
})

test('a run pays under an epoch only for what was said under it, and only while its agent holds it', async (t) => {
  const own = createJudge({ log, runMs: 500 })
  t.after(() => own.close())
  const judged = (epoch: number, text: string, assertHeld = async () => {}) =>
    own.judge(derived(PATTERN), { text }, { root: 'input', org: 'a', run: 'run_1', epoch, assertHeld }).then(textOf)
  for (let n = 0; n < 2; n++) assert.match(await judged(1, HANGS), /^too slow input/)
  assert.match(await judged(1, '{}'), /^spent input: /)
  const { started } = killing(t, 0)
  const refused = new Error('others hold it')
  await assert.rejects(
    judged(2, HANGS, () => Promise.reject(refused)),
    refused,
  )
  assert.equal(started(), 0)
  assert.equal(await judged(2, '{}'), 'fits')
})

test('values of one org that hang do not keep out those of another', async () => {
  const hanging = Promise.all(
    Array.from({ length: 6 }, (_, n) => said(derived(PATTERN), { a: `${'a'.repeat(70 + n)}b` }, { org: 'a' })),
  )
  let isOver = false
  void hanging.then(() => (isOver = true))
  for (let n = 0; n < 20; n++) assert.equal(await said(derived(PATTERN), { a: 'aaa' }, { org: 'b' }), 'fits')
  assert.equal(isOver, false)
  assert.ok((await hanging).every((each) => each.startsWith('too slow')))
})

test('an org that has schema after schema compiled does not have it done in the coordinator', async (t) => {
  const own = createJudge({ log })
  t.after(() => own.close())
  const properties = Object.fromEntries(Array.from({ length: 190 }, (_, n) => [`k${n}`, { type: ['string', 'null'] }]))
  const schema = (n: number) => derived({ description: String(n), type: 'object', properties, required: ['k0'] })
  const judgeFor = async (org: string, n: number) =>
    textOf(await own.judge(schema(n), { text: '{}' }, { root: 'input', org }))
  for (let n = 0; n < 5000 && own.awake() === 0; n++)
    assert.equal(await judgeFor('a', n), 'misfit input.k0: is required')
  assert.equal(own.awake(), 1)
  // What is compiled stays, and another org has a share of its own.
  assert.match(await judgeFor('b', 5001), /^misfit/)
  assert.match(await judgeFor('a', 5001), /^misfit/)
})

test('more schemas than a process keeps are sent again when they are needed', async () => {
  const schemas = Array.from({ length: 210 }, (_, n) => written({ type: 'string', maxLength: n + 1 }))
  for (const [n, schema] of schemas.entries()) assert.equal(await said(schema, 'x'.repeat(n + 1)), 'fits')
  for (const n of [0, 209]) assert.match(await said(schemas[n], 'x'.repeat(n + 2)), /^misfit/)
})
