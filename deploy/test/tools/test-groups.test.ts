import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { PROJECT } from '../../tools/source-files.ts'
import { followFiles, type TestEvent } from '../../tools/file-seconds.ts'
import { testFiles, TIERS } from '../../tools/tiers.ts'
import { inProcesses, pathsOf, type TestProcess } from '../../tools/test-groups.ts'

const TOGETHER = path.join(PROJECT, 'coordinator/test/_kit/together.ts')
const REPORTER = `
  export default async function* (source) {
    for await (const event of source) yield JSON.stringify(event) + '\\n'
  }`

/** Executes files, given by name and text, as one group; answers what is told of them. */
async function executed(t: TestContext, texts: Record<string, string>, deadlineMs = 20_000) {
  const root = mkdtempSync(path.join(tmpdir(), 'windlass-group-'))
  t.after(() => rmSync(root, { recursive: true }))
  const files = Object.keys(texts)
  for (const [name, text] of Object.entries(texts))
    writeFileSync(path.join(root, name), `import { after, before, beforeEach, test } from 'node:test'\n${text}`)
  const group: TestProcess = { entry: path.join(root, 'group.mjs'), files }
  const options = JSON.stringify({ root, files, deadlineMs })
  writeFileSync(group.entry, `import { executeTogether } from '${TOGETHER}'\nexecuteTogether(${options})\n`)
  const reporter = path.join(root, 'reporter.mjs')
  writeFileSync(reporter, REPORTER)
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const args = ['--disable-warning=ExperimentalWarning', '--test', `--test-reporter=${reporter}`, group.entry]
  const child = spawn(process.execPath, args, { cwd: root, env, stdio: ['ignore', 'pipe', 'inherit'] })
  let out = ''
  child.stdout.setEncoding('utf8').on('data', (piece: string) => (out += piece))
  const [code] = (await once(child, 'close')) as [number]
  const followed = followFiles([group])
  const events = out
    .trim()
    .split('\n')
    .map((line) => JSON.parse(line) as TestEvent)
  for (const event of events) followed.see(event)
  const messages = events
    .filter(({ type }) => type === 'test:stdout')
    .map(({ data = {} }) => Reflect.get(data, 'message'))
  return { code, followed, said: messages.join('') }
}

test('files of a group are executed in turn, each with its own hooks, and each has its time', async (t) => {
  const file = (name: string) => `
    before(() => console.log('before ${name}'))
    beforeEach(() => console.log('each ${name}'))
    after(() => console.log('after ${name}'))
    test('one', async () => { await new Promise((settle) => setTimeout(settle, 30)); console.log('test ${name}') })`
  const { code, followed, said } = await executed(t, { 'a.mjs': file('a'), 'b.mjs': file('b') })
  assert.equal(code, 0)
  assert.equal(followed.hasFailed(), false)
  const lines = (name: string) => ['before', 'each', 'test', 'after'].map((what) => `${what} ${name}\n`).join('')
  assert.equal(said, lines('a') + lines('b'))
  const results = followed.results()
  assert.deepEqual(
    results.map((each) => each.file),
    ['a.mjs', 'b.mjs'],
  )
  for (const { ms } of results) assert.ok(ms >= 29, String(ms))
  assert.deepEqual(followed.unfinished(), [])
})

test('a file that hangs is cut off at its deadline, and the next ones are executed', async (t) => {
  const hangs = `test('for ever', () => new Promise(() => setInterval(() => {}, 1000)))`
  const { code, followed, said } = await executed(
    t,
    { 'a.mjs': hangs, 'b.mjs': `test('b', () => console.log('b'))` },
    2000,
  )
  assert.equal(code, 1)
  assert.equal(followed.hasFailed(), true)
  assert.match(said, /b/)
  assert.deepEqual(followed.unfinished(), [])
})

test('a file that ends the process is named with those after it', async (t) => {
  const { followed } = await executed(t, {
    'a.mjs': `test('a', () => process.exit(0))`,
    'b.mjs': `test('b', () => {})`,
  })
  assert.deepEqual(followed.unfinished(), ['a.mjs', 'b.mjs'])
})

test('a process that is red with green tests is told with its exit code and what it wrote last', async (t) => {
  const { code, followed } = await executed(
    t,
    {
      'a.mjs': `test('a', () => { setTimeout(() => {}, 60_000) })`,
      'b.mjs': `test('b', () => console.error('from b'))`,
    },
    2000,
  )
  assert.equal(code, 1)
  assert.deepEqual(followed.unfinished(), [])
  const [failure, ...others] = followed.failures()
  assert.deepEqual(others, [])
  assert.match(failure?.text ?? '', /exit code 1\nfrom b\nAll files are over, but something .* alive: .*Timeout/)
})

// Such a file passed for green, and was not executed again where others were.
test('a file is red whose failing test was made by a kit', async (t) => {
  const kit = mkdtempSync(path.join(tmpdir(), 'windlass-kit-'))
  t.after(() => rmSync(kit, { recursive: true }))
  const made = path.join(kit, 'kit.mjs')
  writeFileSync(
    made,
    `import { test } from 'node:test'\nexport const make = () => test('made', () => { throw new Error('red') })`,
  )
  const { followed } = await executed(t, {
    'a.mjs': `import { make } from '${made}'\nmake()`,
    'b.mjs': `test('b', () => {})`,
  })
  assert.deepEqual(
    followed.results().map(({ file, failed }) => [file, failed]),
    [
      ['a.mjs', 1],
      ['b.mjs', 0],
    ],
  )
})

test('a file that cannot be loaded and a last hook that fails are red, and the next files are executed', async (t) => {
  const fine = `test('fine', () => console.log('fine'))`
  const load = await executed(t, { 'a.mjs': `throw new Error('at load')`, 'b.mjs': fine })
  assert.deepEqual([load.code, load.followed.hasFailed(), load.said], [1, true, 'fine\n'])
  const hook = await executed(t, {
    'a.mjs': `test('a', () => {}); after(() => { throw new Error('at its end') })`,
    'b.mjs': fine,
  })
  assert.deepEqual([hook.followed.hasFailed(), hook.said], [true, 'fine\n'])
})

test('short files of a room stand in groups, those that share a coordinator in others, and none is lost', (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'windlass-group-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const sharing = ['cancel', 'read', 'why', 'retry'].map((name) => `coordinator/test/runs/${name}.test.ts`)
  const short = ['did-you-mean', 'field-path'].map((name) => `shared/test/${name}.test.ts`)
  // It holds the clock, it shows the sharing itself, it is long, it is none of the unit tests.
  const alone = [
    'coordinator/test/runs/token.test.ts',
    'coordinator/test/shared/shared.test.ts',
    'coordinator/test/db/plans.test.ts',
    'deploy/e2e/cancel.test.ts',
  ]
  const processes = inProcesses([...alone, ...short, ...sharing], folder, 1000)
  assert.deepEqual(
    processes.map(({ files }) => files),
    [short, sharing, ...alone.map((file) => [file])],
  )
  assert.ok(readFileSync(processes[1]!.entry, 'utf8').includes(sharing[3]!))
  assert.deepEqual(inProcesses([sharing[0]!], folder, 1000), [{ entry: sharing[0], files: [sharing[0]] }])
})

test('all test files are in processes, and none of a group has more than its share', (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'windlass-group-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const files = testFiles('test')
  const processes = inProcesses(files, folder, 1000)
  assert.deepEqual(processes.flatMap((each) => each.files).toSorted(), files)
  for (const each of processes) assert.ok(each.files.length <= 12, each.entry)
})

test('the longest files are executed first, and are followed like all others', (t) => {
  const folder = mkdtempSync(path.join(tmpdir(), 'windlass-order-'))
  t.after(() => rmSync(folder, { recursive: true }))
  const reporter = path.join(folder, 'reporter.mjs')
  writeFileSync(reporter, REPORTER)
  // Any that are short.
  const files = [
    'shared/test/canonical-json.test.ts',
    'shared/test/did-you-mean.test.ts',
    'shared/test/field-path.test.ts',
  ]
  const processes = files.map((file) => ({ entry: file, files: [file] }))
  const { NODE_TEST_CONTEXT: _, ...env } = process.env
  const options = ['--disable-warning=ExperimentalWarning', '--test', '--test-concurrency=1']
  const paths = pathsOf(processes, new Set([files[2]!]))
  const args = [...options, `--test-reporter=${reporter}`, ...paths]
  const { stdout } = spawnSync(process.execPath, args, { cwd: PROJECT, env, encoding: 'utf8' })
  const followed = followFiles(processes)
  for (const line of stdout.trim().split('\n')) followed.see(JSON.parse(line) as TestEvent)
  assert.deepEqual(
    followed.results().map(({ file, failed }) => [file, failed]),
    [files[2], files[0], files[1]].map((file) => [file, 0]),
  )
})

test('each of the longest files is there', () => {
  const files = [...new Set(TIERS.flatMap((tier) => testFiles(tier)))]
  const paths = pathsOf(files.map((file) => ({ entry: file, files: [file] })))
  assert.equal(paths.filter((each) => path.isAbsolute(each)).length, 11)
})
