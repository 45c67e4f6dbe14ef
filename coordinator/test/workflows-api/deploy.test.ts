import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { SourceFile } from '@windlass/shared/model/workflow.ts'
import { newId } from '@windlass/shared/ids.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { anOrg, aCoordinator, aRun, rawCall, refusal, runOf, type TestCoordinator } from '../_kit/coordinator.ts'
import { filesOf } from '../_kit/workflow-files.ts'

let c: TestCoordinator

before(async () => (c = await aCoordinator()))
after(() => c.stop())

const GREET = `export interface Input {
  /** Who is greeted. */
  name: string
}
export function run(input: Input): { greeting: string } {
  return { greeting: 'Hello, ' + input.name }
}
`

function files(slug: string, over: Record<string, string> = {}, descriptor = ''): SourceFile[] {
  return filesOf({ 'workflow.jsonc': `{ "slug": "${slug}"${descriptor} }`, 'index.ts': GREET, ...over })
}

const create = (files: SourceFile[]) => c.call(ops.workflows.create, { org: c.org, files })
const update = (workflow: string, files: SourceFile[]) => c.call(ops.workflows.update, { org: c.org, workflow, files })
const get = (workflow: string) => c.call(ops.workflows.get, { org: c.org, workflow })

test('files become a workflow whose schemas come from its own types, and come back as they were sent', async () => {
  const sent = files(
    'greet',
    { 'README.md': '# Greets\r\nwith \u00fcmlauts \u{1f600}, a \u2028 and no last line', 'lib/empty.txt': '' },
    ', "description": "Greets.", "timeout": "5m" // a comment',
  ).map((file) =>
    file.path === 'workflow.jsonc'
      ? { ...file, content: file.content.replace(' // a comment }', ' /* a comment */ }') }
      : file,
  )
  const { workflow, version } = await create(sent)
  assert.match(workflow.id, /^wf_/)
  assert.deepEqual(
    [workflow.slug, workflow.name, workflow.description, workflow.version],
    ['greet', 'greet', 'Greets.', 1],
  )
  assert.deepEqual([workflow.pool, workflow.process, workflow.org], ['default', 'fresh', c.org])
  assert.deepEqual(version.inputSchema.required, ['name'])
  assert.equal((version.descriptor as { timeoutMs: number }).timeoutMs, 300_000)
  const got = await get('greet')
  assert.deepEqual(got.workflow, workflow)
  assert.deepEqual(got.version, version)
  const byPath = (files: SourceFile[]) => files.toSorted((a, b) => (a.path < b.path ? -1 : 1))
  assert.deepEqual(byPath(got.files), byPath(sent))
  assert.deepEqual((await get(workflow.id)).workflow, workflow)

  await assert.rejects(aRun(c, { workflow: 'greet', input: { name: 7 } }), refusal('VALIDATION_FAILED', 'input.name'))
  assert.equal((await aRun(c, { workflow: 'greet', input: { name: 'Ada' } })).workflow.version, 1)
})

test('a tuple whose last elements may be left out, or be many, is deployed and judged', async () => {
  const source = `export interface Input { pair: [string, number?]; flags: [string, ...boolean[]] }
    export const run = (input: Input): [string, ...string[]] => [input.pair[0]]`
  await create(files('tuples', { 'index.ts': source }))
  const trigger = (pair: unknown[], flags: unknown[]) => aRun(c, { workflow: 'tuples', input: { pair, flags } })
  await trigger(['a'], ['b'])
  await trigger(['a', 1], ['b', true, false])
  await assert.rejects(trigger(['a', 'x'], ['b']), refusal('VALIDATION_FAILED', 'input.pair[1]'))
  await assert.rejects(trigger(['a', 1, 2], ['b']), refusal('VALIDATION_FAILED', 'input.pair'))
  await assert.rejects(trigger(['a'], ['b', true, 5]), refusal('VALIDATION_FAILED', 'input.flags[2]'))
})

test('a slug that is taken is refused with what to do', async () => {
  await assert.rejects(create(files('greet')), refusal('WORKFLOW_EXISTS', 'slug'))
  const made = await Promise.allSettled(Array.from({ length: 4 }, () => create(files('contested'))))
  assert.equal(made.filter(({ status }) => status === 'fulfilled').length, 1)
  for (const one of made) if (one.status === 'rejected') refusal('WORKFLOW_EXISTS')(one.reason as Error)
})

test('an update makes the next version current at once, and runs that exist keep theirs', async () => {
  await create(files('growing'))
  const old = await aRun(c, { workflow: 'growing', input: { name: 'Ada' } })
  const changed = GREET.replace('name: string', 'names: string[]').replace('input.name', 'input.names.join()')
  const { workflow, version } = await update(
    'growing',
    files('growing', { 'index.ts': changed }, ', "description": "Greets many."'),
  )
  assert.deepEqual([workflow.version, version.version, workflow.description], [2, 2, 'Greets many.'])
  assert.ok(workflow.updatedAt >= workflow.createdAt)
  assert.equal((await runOf(c, old.id)).workflow.version, 1)
  assert.equal((await aRun(c, { workflow: 'growing', input: { names: [] } })).workflow.version, 2)
  await assert.rejects(aRun(c, { workflow: 'growing', input: { name: 'Ada' } }), refusal('VALIDATION_FAILED'))
  const first = await c.call(ops.workflows.getVersion, { org: c.org, workflow: 'growing', version: 1 })
  assert.equal(first.files.find(({ path }) => path === 'index.ts')?.content, GREET)
})

test('two updates at once make two versions, and each hears of its own', async () => {
  const { workflow } = await create(files('contended'))
  const updates = ['a', 'b', 'c'].map((name) =>
    update(workflow.id, files('contended', { 'note.txt': name }, `, "name": "${name}"`)),
  )
  const answers = await Promise.all(updates)
  assert.deepEqual(new Set(answers.map(({ version }) => version.version)), new Set([2, 3, 4]))
  for (const [i, { version }] of answers.entries()) {
    assert.equal((version.descriptor as { name: string }).name, ['a', 'b', 'c'][i])
    const { files } = await c.call(ops.workflows.getVersion, {
      org: c.org,
      workflow: 'contended',
      version: version.version,
    })
    assert.equal(files.find(({ path }) => path === 'note.txt')?.content, ['a', 'b', 'c'][i])
  }
  const last = answers.find(({ version }) => version.version === 4)
  assert.equal((await get('contended')).workflow.name, (last!.version.descriptor as { name: string }).name)
})

test('a slug does not change, and what does not exist is not updated', async () => {
  await assert.rejects(update('greet', files('other')), refusal('CONFLICT', 'slug'))
  assert.equal((await get('greet')).workflow.version, 1)
  await assert.rejects(update('nowhere', files('nowhere')), refusal('NOT_FOUND'))
})

test('what is wrong with the files is told with its path, and nothing is kept of them', async () => {
  const wrong: [SourceFile[], string][] = [
    [filesOf({ 'index.ts': GREET }), 'files'],
    [files('bad', {}, ', "timeuot": "1m"'), 'timeuot'],
    [files('bad', {}, ', "timeout": "soon"'), 'timeout'],
    [files('bad', {}, ', "entry": "main.ts"'), 'entry'],
    // esbuild takes it for a pattern, though a file is called so.
    [files('bad', { 'a*/index.ts': GREET }, ', "entry": "a*/index.ts"'), 'entry'],
    [files('Bad Slug'), 'slug'],
    [files('bad', { '../outside.ts': '' }), 'files[2].path'],
  ]
  for (const [bad, path] of wrong) await assert.rejects(create(bad), refusal('VALIDATION_FAILED', path), path)
  const failure: Error = await create(wrong[1]![0]).then(
    () => assert.fail('it was taken'),
    (error: Error) => error,
  )
  assert.match(failure.message, /workflow\.jsonc:1:\d+.*did you mean `timeout`/)
  for (const code of ['export function run( {', 'export const other = 1']) {
    await assert.rejects(create(files('bad', { 'index.ts': code })), refusal('VALIDATION_FAILED'))
  }
  await assert.rejects(get('bad'), refusal('NOT_FOUND'))
})

test('an org sees its own workflows only, and another may have one of the same name', async () => {
  const strangers = await anOrg(c)
  const key = { apiKey: strangers.apiKey }
  await assert.rejects(c.call(ops.workflows.get, { org: strangers.slug, workflow: 'greet' }, key), refusal('NOT_FOUND'))
  await assert.rejects(
    c.call(ops.workflows.update, { org: strangers.slug, workflow: 'greet', files: files('greet') }, key),
    refusal('NOT_FOUND'),
  )
  assert.equal((await rawCall({ url: c.url, ...key }, 'GET', `/v1/orgs/${c.org}/workflows/greet`)).status, 404)
  const { workflow } = await c.call(ops.workflows.create, { org: strangers.slug, files: files('greet') }, key)
  assert.notEqual(workflow.id, (await get('greet')).workflow.id)
  await assert.rejects(get(workflow.id), refusal('NOT_FOUND'))
  await assert.rejects(get(newId('wf')), refusal('NOT_FOUND'))
})
