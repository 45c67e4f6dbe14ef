import assert from 'node:assert/strict'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { Cron } from 'croner'
import { unpacked } from '../_kit/unpacked.ts'
import { createBytesInFlight } from '../../limits/bytes-in-flight.ts'
import { createWorkflowBuilder } from '../../workflows/build.ts'
import { createCompiler } from '../../workflows/compile.ts'
import { DeployError } from '../../workflows/deploy-error.ts'
import { filesIn, filesOf } from '../_kit/workflow-files.ts'
import { validateAgainst } from '../judging/validate-against.ts'

const inFlight = createBytesInFlight({ org: 64 * 1024 * 1024, all: 64 * 1024 * 1024 })
const builder = createWorkflowBuilder({ inFlight })
after(() => builder.close())

const fixture = () => filesIn(join(import.meta.dirname, 'fixtures', 'orders'))

async function refusal(contents: Record<string, string>): Promise<DeployError> {
  try {
    await builder.build('org', filesOf(contents))
  } catch (error) {
    if (error instanceof DeployError) return error
    throw error
  }
  throw new Error('was accepted')
}

test('a workflow of several files becomes descriptor, bundle, source and schemas', async () => {
  const files = await fixture()
  const built = await builder.build('org', files)
  assert.equal(built.descriptor.slug, 'orders')
  assert.equal(built.descriptor.timeoutMs, 300_000)
  assert.deepEqual(built.warnings, [])
  const bundled = await unpacked(built.bundle.bytes)
  assert.deepEqual(
    bundled.map(({ path }) => path),
    ['main.mjs', 'main.mjs.map'],
  )
  const source = await unpacked(built.source.bytes)
  assert.deepEqual(
    source,
    files.toSorted((a, b) => (a.path < b.path ? -1 : 1)),
  )
})

test('what goes in and comes out is checked by the types of run', async () => {
  const { inputSchema, outputSchema } = await builder.build('org', await fixture())
  const order = { id: 'o1', lines: [{ count: 1, priceCents: 5, sku: 'AB-1' }], state: null }
  assert.equal(validateAgainst(inputSchema, { orders: [order] }), null)
  assert.equal(validateAgainst(inputSchema, { orders: [] })?.path, 'orders')
  assert.equal(
    validateAgainst(inputSchema, { orders: [{ ...order, lines: [{ count: 0, priceCents: 1 }] }] })?.path,
    'orders[0].lines[0].count',
  )
  assert.equal(
    validateAgainst(inputSchema, { orders: [{ ...order, replaces: { ...order, state: 'lost' } }] })?.path,
    'orders[0].replaces.state',
  )
  assert.equal(
    validateAgainst(outputSchema, { items: [{ ...order, total: 5 }], next: null, at: new Date().toJSON() }),
    null,
  )
  assert.equal(
    validateAgainst(outputSchema, { items: [order], next: null, at: new Date().toJSON() })?.path,
    'items[0].total',
  )
})

test('the same files give the same digests and schemas, in any order', async () => {
  const files = await fixture()
  const [once, again] = [await builder.build('org', files), await builder.build('org', files.toReversed())]
  assert.equal(once.bundle.digest, again.bundle.digest)
  assert.equal(once.source.digest, again.source.digest)
  assert.equal(
    JSON.stringify([once.inputSchema, once.outputSchema]),
    JSON.stringify([again.inputSchema, again.outputSchema]),
  )
})

test('builds at once do not disturb each other, nor does one that fails', async () => {
  const good = (n: number) =>
    filesOf({ 'workflow.jsonc': `{ "slug": "w${n}" }`, 'index.ts': `export const run = (): ${n} => ${n}` })
  const bad = filesOf({ 'workflow.jsonc': '{ "slug": "bad" }', 'index.ts': 'export const run = (' })
  const results = await Promise.allSettled([
    builder.build('org', good(1)),
    builder.build('org', bad),
    builder.build('org', good(2)),
  ])
  assert.deepEqual(
    results.map(({ status }) => status),
    ['fulfilled', 'rejected', 'fulfilled'],
  )
  const [first, , third] = results
  assert.deepEqual(first?.status === 'fulfilled' && first.value.outputSchema, { const: 1 })
  assert.deepEqual(third?.status === 'fulfilled' && third.value.outputSchema, { const: 2 })
})

test('files without a descriptor are refused and told where it should be', async () => {
  const error = await refusal({ 'index.ts': '' })
  assert.equal(error.detail.path, 'files')
  assert.match(error.message, /`workflow.jsonc` is not among the files: add one/)
  assert.match((await refusal({ 'my/workflow.jsonc': '{}' })).message, /it lies in `my\/workflow.jsonc`/)
})

test('an entry that is not there names the nearest file', async () => {
  const error = await refusal({ 'workflow.jsonc': '{ "slug": "a" }', 'index.js': '' })
  assert.equal(error.detail.path, 'entry')
  assert.match(error.message, /entry `index.ts` is not among the files: did you mean `index.js`\?/)
})

test('descriptors are read in another process, as many at once as their org may have there', async (t) => {
  const compiler = createCompiler({ mostWaiting: 1 })
  const few = createWorkflowBuilder({ compiler, inFlight })
  t.after(() => few.close())
  const readHere = t.mock.method(Cron.prototype, 'nextRun')
  const schedules = Array.from({ length: 100 }, () => ({ cron: '0 0 29 2 *', timezone: 'Europe/Zurich' }))
  const files = filesOf({ 'workflow.jsonc': JSON.stringify({ slug: 'a', schedules }), 'index.js': '' })
  const refusals = await Promise.allSettled([1, 2, 3].map(() => few.build('org', files)))
  const reasons = refusals.map((refusal) => refusal.status === 'rejected' && (refusal.reason as Error).message)
  const [first, second, third] = reasons.map(String)
  for (const message of [first, second]) assert.match(message!, /entry `index.ts` is not among the files/)
  assert.match(third!, /1 jobs of this org wait for deploys already/)
  assert.equal(readHere.mock.callCount(), 0)
})

test('a program is never executed while it is built', async () => {
  const source = `globalThis.wasExecuted = true; throw new Error('executed'); export const run = () => 1`
  await builder.build('org', filesOf({ 'workflow.jsonc': '{ "slug": "a" }', 'index.ts': source }))
  assert.equal('wasExecuted' in globalThis, false)
})

test('text that the database cannot hold is refused with its place', async () => {
  const program = 'export const run = (): number => 1'
  const inName = await refusal({ 'workflow.jsonc': '{ "slug": "a", "name": "half \\ud800" }', 'index.ts': program })
  assert.equal(inName.detail.path, 'name')
  assert.match(inName.message, /workflow.jsonc: `name` holds U\+0000 or half of a surrogate pair/)
  const source = String.raw`export const run = (input: { a: '\ud800' }): number => input.a.length`
  const inType = await refusal({ 'workflow.jsonc': '{ "slug": "a" }', 'index.ts': source })
  assert.match(inType.message, /index.ts: .* holds U\+0000 or half of a surrogate pair/)
})

test("a source that is too deep for the stack is the customer's to mend", async () => {
  const brackets = `export const run = (): number => ${'('.repeat(20_000)}1${')'.repeat(20_000)}`
  const deep = await refusal({ 'workflow.jsonc': '{ "slug": "a" }', 'index.ts': brackets })
  assert.match(deep.message, /nests too deep to be read/)
})

test('keys that nothing follows from yet are named, each with what happens in their place', async () => {
  const descriptor = {
    slug: 'a',
    labels: ['gpu'],
    concurrency: 1,
    retries: { crash: 1, error: 2, onCrash: 'fresh', onLost: 'hold' },
    schedules: [{ rate: '1h' }],
    notifications: [{ email: 'a@example.com' }],
    budget: { usd: 1 },
    connections: [{ connection: 'github', events: ['push'] }],
    workspace: { persist: true },
  }
  const warningsOf = async (content: object) => {
    const files = { 'workflow.jsonc': JSON.stringify(content), 'index.ts': 'export const run = (): number => 1' }
    return (await builder.build('org', filesOf(files))).warnings
  }
  const warnings = await warningsOf(descriptor)
  assert.deepEqual(
    warnings.map(({ message }) => /^`([\w.]+)` has no effect yet: ./.exec(message)?.[1]),
    ['retries.onLost', 'notifications', 'budget', 'workspace.persist'],
  )
  assert.deepEqual(warnings[0], {
    message:
      '`retries.onLost` has no effect yet: a waiting run whose process is lost is always led back to where it stood',
    file: 'workflow.jsonc',
  })
  const defaults = { slug: 'a', labels: [], retries: { error: 0 }, schedules: [], workspace: {}, process: 'reuse' }
  assert.deepEqual(await warningsOf(defaults), [])
  const doubtful = { active: '1h', wall: '10m', queue: '10m' }
  const retries = { error: { max: 1, delay: '10m' } }
  const found = await warningsOf({ slug: 'a', timeout: doubtful, retries })
  assert.deepEqual(
    found.map(({ message }) => /^`([\w.]+)` is (not )?shorter than `([\w.]+)`/.exec(message)?.slice(1)),
    [
      ['timeout.wall', undefined, 'timeout.active'],
      ['timeout.queue', 'not ', 'timeout.wall'],
      ['retries.error.delay', 'not ', 'timeout.wall'],
    ],
  )
  assert.deepEqual(await warningsOf({ slug: 'a', timeout: { wall: '10m', queue: '1m' }, concurrency: 1 }), [])
  const load = { concurrency: [{ limit: 2 }, { limit: 2, key: 'input.a' }], debounce: { wait: '10m' } }
  const [late, idle] = await warningsOf({ slug: 'a', timeout: { active: '1m', wall: '10m' }, ...load })
  assert.match(late!.message, /^`debounce\.maxWait` .* is not shorter than `timeout\.wall`/)
  assert.match(idle!.message, /^a limit of `concurrency` with a `key` is not lower/)
  const fine = { concurrency: [{ limit: 2 }, { limit: 1, key: 'input.a' }], debounce: { wait: '1m' } }
  assert.deepEqual(await warningsOf({ slug: 'a', ...fine, throttle: { limit: 1, per: '1s' } }), [])
})

test('a version keeps 20 warnings, says how many there were, and shortens long ones', async () => {
  const warningsOf = async (...keys: string[]) => {
    const descriptor = '{ "slug": "a", "entry": "index.js", "budget": { "usd": 1 } }'
    const code = `const all = {\n${keys.map((key) => `${key}: 1`).join(',\n')}\n}\nexport const run = () => all.a`
    const files = { 'workflow.jsonc': descriptor, 'index.js': code }
    return (await builder.build('org', filesOf(files))).warnings
  }
  const many = await warningsOf(...Array.from({ length: 20_000 }, () => 'a'))
  assert.equal(many.length, 21)
  assert.match(many[0]!.message, /^`budget` has no effect yet/)
  assert.match(many[19]!.message, /Duplicate key "a"/)
  assert.deepEqual(many[20], { message: 'there are at least 20000 warnings; only the first 20 are kept' })
  const few = await warningsOf(...Array.from({ length: 20 }, () => 'a'))
  assert.equal(few.length, 20)
  assert.match(few[19]!.message, /Duplicate key "a"/)
  const long = await warningsOf('a', ...Array.from({ length: 2 }, () => 'b'.repeat(100_000)))
  assert.deepEqual(
    long.map(({ message }) => message.length <= 1001),
    [true, true],
  )
})
