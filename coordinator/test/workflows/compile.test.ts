/** What customers send costs the coordinator neither its memory nor its time: it is built in processes of their own. */
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdtempSync, readdirSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { pathToFileURL } from 'node:url'
import { createLog } from '@windlass/shared/log.ts'
import { untilGone } from '@windlass/shared/test/_kit/processes.ts'
import { moment } from '@windlass/shared/test/_kit/until.ts'
import { ownUser } from '../../tools/own-user.ts'
import { type CompilerOptions, createCompiler } from '../../workflows/compile.ts'
import { DeployError } from '../../workflows/deploy-error.ts'
import { filesOf } from '../_kit/workflow-files.ts'

const NOT_ROOT = !(process.platform === 'linux' && process.getuid?.() === 0) && 'needs root'
const GOOD = 'export const run = () => "x" as string'
/** Types that never end, as far as anybody would wait: each part takes a quick machine a third of a second. */
const ENDLESS = `type Digit = '0'|'1'|'2'|'3'|'4'|'5'|'6'|'7'|'8'|'9'
  type Names<P extends string> = \`\${P}\${Digit}\${Digit}\${Digit}\${Digit}\`
  type Part<P extends string> = { [K in Names<P>]: \`\${K}\${Digit}\` }[Names<P>] extends never ? 1 : 2
  export function run(input: [${Array.from({ length: 100 }, (_, n) => `Part<'${n}x'>`).join()}]): 1 { throw 1 }`

/** Enough for a small program, and used up sooner. */
const SMALL = { heapMb: 256, dataMb: 320 }

const aProgram = (source: string) => filesOf({ 'workflow.jsonc': '{ "slug": "a" }', 'index.ts': source })

function aCompiler(t: TestContext, options: CompilerOptions = {}) {
  const compiler = createCompiler(options)
  t.after(() => compiler.close())
  const read = (source: string, org = 'org') => compiler.compile(org, aProgram(source))
  return { compiler, read }
}

/** A text type of 2 ** doublings times 16 characters. */
function longText(doublings: number): string {
  const doubled = Array.from({ length: doublings }, (_, n) => `type A${n + 1} = D<A${n}>`)
  return ['type D<T extends string> = `${T}${T}`', `type A0 = '${'x'.repeat(16)}'`, ...doubled].join('\n')
}

test('types and bundles that eat the memory are refused, and the next program is built', async (t) => {
  const { read } = aCompiler(t, SMALL)
  const upper = Array.from({ length: 12 }, (_, n) => `Uppercase<\`\${A22}${n}\`>`).join()
  const source = `${longText(22)}\nexport function run(input: [${upper}]): 1 { throw 1 }`
  assert.ok(source.length < 1500)
  await assert.rejects(read(source), (error) => {
    assert.ok(error instanceof DeployError)
    assert.match(error.message, /^building index\.ts takes too much memory: give the input and the return value of/)
    assert.deepEqual(error.detail, { path: 'files/index.ts', file: 'index.ts' })
    return true
  })
  const functions = Array.from(
    { length: 30_000 },
    (_, n) => `export function f${n}(a, b) { return [a, b, { n: ${n} }] }`,
  )
  await assert.rejects(read(`${functions.join('\n')}\n${GOOD}`), /takes too much memory/)
  assert.deepEqual((await read(GOOD)).schemas.outputSchema, { type: 'string' })
})

test('types that take for ever are refused, and the next program is built', async (t) => {
  const { read } = aCompiler(t, { typesMs: 5_000 })
  await assert.rejects(read(ENDLESS), /^DeployError: building index\.ts takes too much time: give the input/)
  assert.deepEqual((await read(GOOD)).schemas.outputSchema, { type: 'string' })
})

test('types whose schema is longer than anybody could read are refused with their place', async (t) => {
  const { read } = aCompiler(t)
  for (const [signature, what] of [
    ['input: A17): 1', 'input'],
    ['): A17', 'return'],
  ]) {
    await assert.rejects(read(`${longText(17)}\nexport function run(${signature} { throw 1 }`), (error) => {
      assert.ok(error instanceof DeployError)
      const sentence = `^the ${what} type of \`run\` in index.ts is too large to be checked: .* 131072 are allowed: `
      assert.match(error.message, new RegExp(sentence))
      assert.deepEqual(error.detail, { path: 'files/index.ts', file: 'index.ts', line: 20, column: 1 })
      return true
    })
  }
})

test('a deploy whose process cannot be had is told so, is logged, and the next one tries again', async (t) => {
  const lines: string[] = []
  const log = createLog({}, 'info', { write: (line) => lines.push(line) })
  const { compiler, read } = aCompiler(t, { log, program: new URL('none.ts', import.meta.url) })
  for (let n = 1; n <= 2; n++) {
    await assert.rejects(read(GOOD), { code: 'UNAVAILABLE', message: /can be started/ })
    assert.match(lines.at(-1) ?? '', /"tools\.unstarted".*"deploys"/)
  }
  await compiler.close()
})

test('a compiler that could not be opened is closed without a word', async () => {
  const log = createLog({}, 'info', { write: () => undefined })
  const compiler = createCompiler({ log, program: new URL('none.ts', import.meta.url) })
  const refused = assert.rejects(compiler.compile('org', aProgram(GOOD)))
  await compiler.close()
  await refused
})

test('an org whose types take for ever may bring few more, and does not keep another out', async (t) => {
  const { compiler, read } = aCompiler(t, { mostWaiting: 1 })
  const slow = Promise.allSettled([read(ENDLESS, 'slow'), read(ENDLESS, 'slow')])
  await assert.rejects(read(GOOD, 'slow'), { code: 'UNAVAILABLE', status: 503, message: /try again/ })
  assert.deepEqual((await read(GOOD, 'other')).schemas.outputSchema, { type: 'string' })
  await compiler.close()
  const endings = (await slow).map((ending) => ending.status === 'rejected' && String(ending.reason))
  for (const ending of endings) assert.match(String(ending), /the coordinator is being stopped: try again/)
})

test('bundler and type checker know nothing of the coordinator, are not its user, and end when idle', async (t) => {
  process.env['WINDLASS_TEST_SECRET'] = 'hush'
  const { compiler, read } = aCompiler(t, { idleMs: 500 })
  assert.equal(compiler.awake(), 0)
  const ended = moment('tools.ended')
  const holding = setInterval(() => undefined, 1000)
  t.after(() => clearInterval(holding))
  // As root they have a user of their own, who can read nothing that is the coordinator's alone.
  const files = ['../../workflows/compile-process.ts', 'esbuild', 'typescript-api'].map(
    (name) => new URL(import.meta.resolve(name)),
  )
  const { user } = await ownUser('deploys', files)
  const uid = String(user?.uid ?? process.getuid?.())
  await read(GOOD)
  // They end soon: nothing is waited for while they are looked at.
  const below = descendants(process.pid)
  assert.deepEqual(below.map(({ name }) => name).toSorted(), ['esbuild', 'node'])
  const names = below.flatMap(({ pid }) => environmentOf(pid))
  assert.deepEqual(
    names.filter((name) => !/^(NODE_CHANNEL_\w+|PWD|OLDPWD|SHLVL|_|)$/.test(name)),
    [],
  )
  for (const { pid } of below)
    assert.match(readFileSync(`/proc/${pid}/status`, 'utf8'), new RegExp(`^Uid:\\s${uid}\\s`, 'm'))
  await ended
  await Promise.all(below.map(({ pid, name }) => untilGone(name, pid)))
  assert.deepEqual((await read(GOOD)).schemas.outputSchema, { type: 'string' })
})

test('where a user of their own cannot reach every file, programs are built without', { skip: NOT_ROOT }, async (t) => {
  const folder = mkdtempSync(join(tmpdir(), 'windlass-compile-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  chmodSync(folder, 0o755)
  const real = import.meta.resolve('../../workflows/compile-process.ts')
  writeFileSync(join(folder, 'hidden.mjs'), `import ${JSON.stringify(real)}`, { mode: 0o600 })
  writeFileSync(join(folder, 'program.mjs'), "import './hidden.mjs'", { mode: 0o644 })
  const lines: string[] = []
  const log = createLog({}, 'info', { write: (line) => lines.push(line) })
  const { read } = aCompiler(t, { log, program: pathToFileURL(join(folder, 'program.mjs')) })
  assert.deepEqual((await read(GOOD)).schemas.outputSchema, { type: 'string' })
  const { name, by, why } = JSON.parse(lines[0]!) as Record<string, unknown>
  assert.deepEqual([lines.length, name, by], [1, 'deploys.confined', 'process'])
  assert.match(String(why), /program\.mjs did not start/)
})

test('bundler and type checker do not outlive a coordinator that is killed in the middle of a job', async (t) => {
  const program = `
    import { createCompiler } from ${JSON.stringify(import.meta.resolve('../../workflows/compile.ts'))}
    const compiler = createCompiler()
    const descriptor = { path: 'workflow.jsonc', content: '{ "slug": "a" }' }
    const read = (content) => compiler.compile('org', [descriptor, { path: 'index.ts', content }])
    await read('export const run = () => 1')
    console.log('built')
    await read(${JSON.stringify(ENDLESS)})`
  const args = ['--disable-warning=ExperimentalWarning', '--input-type=module', '--eval', program]
  const parent = spawn(process.execPath, args, { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => parent.kill('SIGKILL'))
  await once(parent.stdout, 'data')
  const below = descendants(parent.pid!)
  assert.deepEqual(below.map(({ name }) => name).toSorted(), ['esbuild', 'node'])
  parent.kill('SIGKILL')
  await Promise.all(below.map(({ pid, name }) => untilGone(name, pid)))
})

/** Processes below another, with the name that the kernel has for them. */
function descendants(pid: number): { pid: number; name: string }[] {
  const all = readdirSync('/proc').filter((name) => /^\d+$/.test(name))
  return all.flatMap((each) => {
    const stat = statOf(Number(each))
    if (!stat || stat.parent !== pid) return []
    return [{ pid: Number(each), name: stat.name }, ...descendants(Number(each))]
  })
}

function environmentOf(pid: number): string[] {
  const text = readFileSync(`/proc/${pid}/environ`, 'utf8')
  return text.split('\0').map((each) => each.split('=')[0] ?? '')
}

function statOf(pid: number): { name: string; parent: number } | undefined {
  try {
    const [, name, parent] = /^\d+ \((.*)\) \S (\d+)/s.exec(readFileSync(`/proc/${pid}/stat`, 'utf8')) ?? []
    return name === undefined ? undefined : { name, parent: Number(parent) }
  } catch {
    return undefined
  }
}
