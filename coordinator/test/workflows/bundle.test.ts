import assert from 'node:assert/strict'
import { execFile } from 'node:child_process'
import { mkdir, mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { promisify } from 'node:util'
import * as esbuild from 'esbuild'
import { bundleWorkflow } from '../../workflows/bundle.ts'
import { DeployError } from '../../workflows/deploy-error.ts'
import { SDK_EXPORTS } from '../../workflows/sdk-imports.ts'
import { filesOf } from '../_kit/workflow-files.ts'

after(() => esbuild.stop())

async function bundle(contents: Record<string, string>, entry = 'index.ts') {
  const { files, warnings } = await bundleWorkflow(filesOf(contents), entry)
  const text = (path: string) => files.find((file) => file.path === path)?.content ?? ''
  return {
    files,
    warnings,
    code: text('main.mjs'),
    map: JSON.parse(text('main.mjs.map')) as { sources: string[]; sourcesContent: string[] },
  }
}

async function refusal(contents: Record<string, string>, entry = 'index.ts'): Promise<DeployError> {
  try {
    await bundle(contents, entry)
  } catch (error) {
    if (error instanceof DeployError) return error
    throw error
  }
  throw new Error('was accepted')
}

/** What a bundle prints when it is executed as an agent would, in a process of its own. */
async function execute(contents: Record<string, string>, call: string, flags: string[] = []): Promise<string> {
  const folder = await mkdtemp(join(tmpdir(), 'windlass-bundle-'))
  try {
    const { files } = await bundle(contents)
    for (const { path, content } of files) await writeFile(join(folder, path), content)
    await mkdir(join(folder, 'node_modules', 'windlass'), { recursive: true })
    await writeFile(
      join(folder, 'node_modules', 'windlass', 'index.mjs'),
      'export const phase = (name) => console.log("phase", name)',
    )
    await writeFile(
      join(folder, 'node_modules', 'windlass', 'package.json'),
      '{ "name": "windlass", "exports": "./index.mjs" }',
    )
    const script = `import { run } from ${JSON.stringify(pathToFileURL(join(folder, 'main.mjs')).href)}; ${call}`
    const args = [...flags, '--input-type=module', '-e', script]
    const { stdout } = await promisify(execFile)(process.execPath, args, { timeout: 10_000, env: {} })
    return stdout.replaceAll(folder, '').trim()
  } finally {
    await rm(folder, { recursive: true, force: true })
  }
}

test('imports between files resolve as TypeScript and Node write them', async () => {
  const out = await execute(
    {
      'index.ts': `import { a } from './lib/a.js'; import { b } from './b'; import { c } from './folder'; import data from './data.json'
        import prompt from './prompt.md'; import { join } from 'path'; import { phase } from 'windlass'
        export async function run(input: { n: number }) { phase('go'); return [a, b, c, data.d, prompt, join('x', 'y'), input.n] }`,
      'lib/a.ts': `export { a } from '../deep/a'`,
      'deep/a.mts': 'export const a: string = "a"',
      'b.mjs': 'export const b = "b"',
      'folder/index.tsx': 'export const c = "c"',
      'data.json': '{ "d": "d" }',
      'prompt.md': 'Grüezi',
    },
    'console.log(JSON.stringify(await run({ n: 1 })))',
  )
  assert.equal(out, 'phase go\n["a","b","c","d","Grüezi","x/y",1]')
})

test('a package is taken from where the deploy puts it', async () => {
  const out = await execute(
    {
      'index.ts': `import one from 'one'; import { two } from '@scope/two/sub'; export const run = () => one + two`,
      'vendor/one.mjs': 'export default 1',
      'vendor/@scope/two/sub.mjs': 'export const two = 2',
    },
    'console.log(run())',
  )
  assert.equal(out, '3')
})

test('CommonJS inside a vendored package reaches the modules of Node', async () => {
  const contents = {
    'index.ts': `import path from 'old'; export const run = () => path.posix.join('a', 'b')`,
    'vendor/old.mjs': `var __require = ((x) => typeof require !== 'undefined' ? require : x)(function () { throw new Error('no require') })
      export default __require('path')`,
  }
  assert.equal(await execute(contents, 'console.log(run())'), 'a/b')
  assert.match((await bundle(contents)).code, /^import \{ createRequire as /)
  assert.doesNotMatch((await bundle({ 'index.ts': 'export const run = () => 1' })).code, /createRequire/)
})

test('a program with a `require` of its own may import CommonJS code that asks for modules of Node', async () => {
  const contents = {
    'index.ts': `import { createRequire } from 'node:module'
      import { eol } from './old.cjs'
      import { one } from 'packed'
      const require = createRequire(import.meta.url)
      const createRequireOfBundle = 'mine'
      export const run = () => [eol.length, require('node:path').sep, one, createRequireOfBundle]`,
    'old.cjs': `exports.eol = require('node:os').EOL`,
    // As the deploy packs a CommonJS package.
    'vendor/packed.mjs': `import { createRequire as windlassCreateRequire } from 'node:module'
      const require = windlassCreateRequire(import.meta.url)
      var __require = ((x) => require)(); export const one = __require('node:util').format('%d', 1)`,
  }
  assert.equal(await execute(contents, 'console.log(JSON.stringify(run()))'), '[1,"/","1","mine"]')
})

test('CommonJS code finds the folder and the file of the bundle', async () => {
  const contents = {
    'index.ts': `import { here } from './old.cjs'
      import { own } from './own'
      export const run = () => [...here, own]`,
    'old.cjs': `exports.here = [typeof __dirname, __dirname, require('path').relative(__dirname, __filename)]`,
    'own.ts': `import { dirname } from 'node:path'
      const __dirname = dirname('/of/mine'); export const own = __dirname`,
  }
  // The folder itself is cut from what is printed.
  assert.equal(await execute(contents, 'console.log(JSON.stringify(run()))'), '["string","","main.mjs","/of"]')
})

test('the source map names the files as they were sent, and a stack shows their lines', async () => {
  const contents = {
    'index.ts': `import { fail } from './lib/fail'\nexport const run = () => fail()`,
    'lib/fail.ts': `type A = 1\n\nexport function fail() { throw new Error('x') }`,
  }
  const { map } = await bundle(contents)
  assert.deepEqual(map.sources, ['lib/fail.ts', 'index.ts'])
  assert.deepEqual(map.sourcesContent, [contents['lib/fail.ts'], contents['index.ts']])
  const stack = await execute(contents, 'try { run() } catch (e) { console.log(e.stack) }', ['--enable-source-maps'])
  assert.match(stack, /\/lib\/fail\.ts:3:/)
})

test('the same files give the same bytes, in whatever order they come', async () => {
  const contents = {
    'index.ts': `import { a } from './a'; export const run = () => a`,
    'a.ts': 'export const a = 1',
    'unused.ts': '',
  }
  const turned = Object.fromEntries(Object.entries(contents).toReversed())
  assert.deepEqual((await bundle(contents)).files, (await bundle(turned)).files)
})

test('a syntax error is told with file, line and column', async () => {
  const error = await refusal({
    'index.ts': `import './lib/x'\nexport const run = () => 1`,
    'lib/x.ts': '\n  const a = ]',
  })
  assert.equal(error.message, 'lib/x.ts:2:13: Unexpected "]"')
  const { problems, ...detail } = error.detail
  assert.deepEqual(detail, { path: 'files/lib/x.ts', file: 'lib/x.ts', line: 2, column: 13 })
  assert.equal(problems?.length, 1)
})

test('an entry without `run` is refused and told what it exports instead', async () => {
  const error = await refusal({ 'index.ts': 'export default function () {}' })
  assert.match(error.message, /^index\.ts does not export `run` \(it exports `default`\)/)
  assert.equal(error.detail.path, 'files/index.ts')
  assert.match((await refusal({ 'index.ts': 'console.log(1)' })).message, /^index\.ts does not export `run`: write/)
})

test('an npm package that was not sent names the command that sends it', async () => {
  const error = await refusal({ 'index.ts': `import _ from 'lodash'; export const run = () => _` })
  assert.match(
    error.message,
    /`lodash` is not among the files: deploy with `windlass deploy`, which bundles npm packages/,
  )
  assert.deepEqual([error.detail.line, error.detail.column], [1, 15])
})

test('a packed package may do without an optional part that it looks for at run time', async () => {
  const contents = {
    'index.ts': `import { how } from 'one'
      export const run = () => how`,
    'vendor/one.mjs': `export const how = await import('optional-part').catch(({ code }) => code)`,
  }
  assert.equal(await execute(contents, 'console.log(run())'), 'ERR_MODULE_NOT_FOUND')
  const own = { 'index.ts': `export const run = () => import('optional-part')` }
  assert.match((await refusal(own)).message, /`optional-part` is not among the files/)
})

test('a missing file names the nearest one', async () => {
  const error = await refusal({ 'index.ts': `import './libb/a.ts'; export const run = () => 1`, 'lib/a.ts': '' })
  assert.match(error.message, /`\.\/libb\/a\.ts` is not among the files, did you mean `\.\/lib\/a\.ts`\?/)
})

for (const specifier of [
  '/etc/hostname',
  '../../../../../../etc/hostname',
  'file:///etc/hostname',
  'https://example.com/x.js',
  './addon.node',
  'node:nothing',
  './style.css',
  '#internal',
]) {
  test(`import ${specifier} reads nothing and is refused`, async () => {
    const error = await refusal({
      'index.ts': `import '${specifier}'; export const run = () => 1`,
      'addon.node': '',
      'style.css': '',
    })
    assert.match(error.detail.path, /^files\/(index\.ts|style\.css)$|^files$/)
  })
}

test('a require that only a disk could answer is refused like an import', async () => {
  const error = await refusal({ 'index.js': `const a = require('./package.json'); exports.run = () => a` }, 'index.js')
  assert.match(error.message, /is not among the files/)
})

test('two builds at once do not disturb each other', async () => {
  const numbers = Array.from({ length: 8 }, (_, n) => n)
  const built = await Promise.all(numbers.map((n) => bundle({ 'index.ts': `export const run = () => 'build ${n}'` })))
  for (const n of numbers) assert.match(built[n]?.code ?? '', new RegExp(`"build ${n}"`))
})

test('the service of the bundler can be stopped and starts again by itself', async () => {
  await esbuild.stop()
  assert.match((await bundle({ 'index.ts': 'export const run = () => 1' })).code, /run/)
})

test('an import that `windlass` does not have is refused with its place, in either language', async () => {
  for (const entry of ['index.ts', 'index.js']) {
    const code = "import { phase, agnt, stp } from 'windlass'\nexport const run = () => (phase('a'), agnt(), stp())"
    const { message, detail } = await refusal({ [entry]: code }, entry)
    assert.match(message, /`windlass` exports no `agnt`.*could not be started/)
    assert.deepEqual([detail.file, detail.line, detail.column], [entry, 1, 17])
    assert.match(detail.problems?.[1]?.message ?? '', /no `stp`, did you mean `step`/)
  }
})

test('what `windlass` has is imported from there in each way, and types need not be there', async () => {
  const { code } = await bundle({
    'index.ts': [
      "import { type Duration, RunContext, phase } from 'windlass'",
      "import * as all from 'windlass'",
      "export { step } from 'windlass'",
      "export async function run(_: unknown, context: RunContext, wait?: Duration) { all.log('a'); phase('b')",
      "  return (await import('windlass')).sleep(wait ?? 1) }",
    ].join('\n'),
  })
  assert.match(code, /import \{[^}]*phase[^}]*\} from "windlass"/)
  assert.match(code, /import\("windlass"\)/)
  const sdk = (await import(import.meta.resolve('windlass'))) as object
  assert.deepEqual(Object.keys(sdk).toSorted(), [...SDK_EXPORTS].toSorted())
})
