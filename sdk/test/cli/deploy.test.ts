import assert from 'node:assert/strict'
import { symlink, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { Fault } from '@windlass/shared/errors.ts'
import { Failure } from '../../cli/failure.ts'
import { packFolder } from '../../cli/commands/deploy.ts'
import { packageFiles, vendored } from '../_kit/packages.ts'
import { startFake } from '../_kit/fake-service.ts'
import { folderOf, runCli } from '../_kit/run-cli.ts'
import { aVersion, aWorkflow } from '../_kit/samples.ts'

const BASE = {
  'workflow.jsonc': '{\n  // a comment\n  "slug": "hello",\n}',
  'index.ts':
    "import { greet } from './lib/greet.ts'\nexport const run = (input: { name: string }) => greet(input.name)\n",
  'lib/greet.ts': 'export const greet = (name: string) => `Hello, ${name}`\n',
}

const deployed = { workflow: aWorkflow({ version: 4 }), version: aVersion({ version: 4, warnings: ['beware'] }) }

test('a workflow that exists gets a new version; slug, version, schemas and warnings are told', async (t) => {
  const { url, asked } = await startFake(t, { 'workflows.update': () => deployed })
  const { code, stdout, stderr } = await runCli(['deploy', await folderOf(t, BASE)], { url })
  assert.equal(code, 0, stderr)
  assert.match(
    stdout,
    /^Deployed hello, version 4 \(3 files, \d+ B\)\n +input +\{ name: string \}\n +output +string\n$/,
  )
  assert.match(stderr, /warning: beware\nNext: windlass run hello/)
  const { workflow, files } = asked[0]!.args as { workflow: string; files: { path: string; content: string }[] }
  assert.equal(workflow, 'hello')
  assert.deepEqual(Object.fromEntries(files.map((file) => [file.path, file.content])), BASE)
})

test('a workflow that is not there is created', async (t) => {
  const { url, asked } = await startFake(t, { 'workflows.create': () => deployed })
  const { code, stdout } = await runCli(['deploy', '--json'], { url, cwd: await folderOf(t, BASE) })
  assert.equal(code, 0)
  assert.deepEqual(JSON.parse(stdout), deployed)
  assert.deepEqual(
    asked.map((each) => each.id),
    ['workflows.update', 'workflows.create'],
  )
})

test('what the service refuses ends with 2 and its words', async (t) => {
  const { url } = await startFake(t, {
    'workflows.update': () => {
      throw new Fault(
        'VALIDATION_FAILED',
        { path: 'tiemout' },
        'workflow.jsonc:3:3: unknown key `tiemout`, did you mean `timeout`?',
      )
    },
  })
  const { code, stderr } = await runCli(['deploy', await folderOf(t, BASE)], { url })
  assert.equal(code, 2)
  assert.match(stderr, /^error: workflow\.jsonc:3:3: unknown key/m)
})

test('what is wrong in the folder is told before anything is sent', async (t) => {
  const { url, asked } = await startFake(t)
  const cases: [Record<string, string>, RegExp][] = [
    [{}, /no workflow\.jsonc/],
    [{ 'workflow.jsonc': '{ "slug": }' }, /workflow\.jsonc:1:11: ValueExpected/],
    [{ 'workflow.jsonc': '{}' }, /no `slug`/],
    [{ 'workflow.jsonc': '{ "slug": "a" }' }, /entry index\.ts is not in/],
    [{ ...BASE, 'index.ts': 'export const run = (' }, /index\.ts:1:\d+: Unexpected end of file/],
    [
      { ...BASE, 'index.ts': "import x from 'not-installed'\nexport const run = () => x" },
      /Could not resolve "not-installed"[^]*see that `not-installed` is the npm package that you mean/,
    ],
  ]
  for (const [files, why] of cases) {
    const { code, stderr } = await runCli(['deploy', await folderOf(t, files)], { url })
    assert.equal(code, 2, stderr)
    assert.match(stderr, why)
  }
  assert.equal(asked.length, 0)
})

async function failureOf(packed: Promise<unknown>): Promise<Failure> {
  const failure = await packed.then(
    () => undefined,
    (error: unknown) => error,
  )
  assert.ok(failure instanceof Failure, 'it is refused')
  return failure
}

async function pathsOf(folder: string): Promise<string[]> {
  return (await packFolder(folder)).files.map((file) => file.path)
}

test('installed, built and hidden files stay at home, unless the program imports them', async (t) => {
  const folder = await folderOf(t, {
    ...BASE,
    'index.ts': "import { built } from './dist/built.js'\nexport const run = () => built\n",
    'dist/built.js': 'export const built = 1\n',
    'dist/other.js': '',
    'node_modules/a/index.js': '',
    '.env': 'SECRET=1',
    '.git/config': '',
    'package-lock.json': '{}',
    'README.md': '# Hello',
    'logo.png': new Uint8Array([0x89, 0x50, 0x4e, 0x47, 0, 0xff]),
  })
  const packed = await packFolder(folder)
  assert.deepEqual(
    packed.files.map((file) => file.path),
    ['README.md', 'dist/built.js', 'index.ts', 'lib/greet.ts', 'workflow.jsonc'],
  )
  assert.deepEqual(packed.warnings, ['logo.png is not UTF-8 text and was left out'])
})

test('a link inside the folder is followed, one that leads out is refused', async (t) => {
  const folder = await folderOf(t, BASE)
  await symlink(path.join(folder, 'lib/greet.ts'), path.join(folder, 'lib/again.ts'))
  assert.ok((await pathsOf(folder)).includes('lib/again.ts'))
  const secret = await folderOf(t, { 'secret.txt': 'x' })
  await symlink('..', path.join(folder, 'lib/loop'))
  assert.deepEqual((await packFolder(folder)).warnings, ['lib/loop is a link to a folder and was left out'])
  await symlink(path.join(secret, 'secret.txt'), path.join(folder, 'notes.txt'))
  await assert.rejects(packFolder(folder), /notes\.txt is a link out of the folder/)
})

test('a link to what stays at home stays there too, unless the program imports it', async (t) => {
  const folder = await folderOf(t, {
    ...BASE,
    'index.ts': "import { built } from './built.ts'\nexport const run = () => built\n",
    'dist/built.ts': 'export const built = 1\n',
    '.env': 'SECRET=1',
    '.config/token.txt': 'SECRET=2',
  })
  await symlink('dist/built.ts', path.join(folder, 'built.ts'))
  await symlink('.env', path.join(folder, 'config.txt'))
  await symlink('../.config/token.txt', path.join(folder, 'lib/token.txt'))
  const packed = await packFolder(folder)
  assert.ok(packed.files.some((file) => file.path === 'built.ts'))
  assert.ok(!packed.files.some((file) => file.content.includes('SECRET')))
  assert.deepEqual(packed.warnings, [
    'config.txt is a link to .env and was left out',
    'lib/token.txt is a link to .config/token.txt and was left out',
  ])
})

test('an import may have a query, and a file a name that is not UTF-8', async (t) => {
  const folder = await folderOf(t, {
    ...BASE,
    'index.ts': `${BASE['index.ts']}import './dist/set-up.ts?x=1'\nimport './lib/greet.ts?y'\n`,
    'dist/set-up.ts': 'globalThis.name = 1\n',
  })
  await writeFile(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0xff]), Buffer.from('.txt')]), 'x')
  await writeFile(path.join(folder, 'z\uFFFD.txt'), 'a name like any other')
  const packed = await packFolder(folder)
  const paths = packed.files.map((file) => file.path)
  assert.deepEqual(paths, ['dist/set-up.ts', 'index.ts', 'lib/greet.ts', 'workflow.jsonc', 'z\uFFFD.txt'])
  assert.deepEqual(packed.warnings, ['\uFFFD.txt has a name that is not UTF-8, and was left out'])
})

test('an import from outside of the folder is refused', async (t) => {
  const parent = await folderOf(t, {
    'shared.ts': 'export const a = 1',
    'wf/workflow.jsonc': '{"slug":"a"}',
    'wf/index.ts': "import { a } from '../shared.ts'\nexport const run = () => a",
  })
  await assert.rejects(
    packFolder(path.join(parent, 'wf')),
    /\.\.\/shared\.ts is imported by index\.ts and lies outside/,
  )
})

test('too many files are refused before all are read', async (t) => {
  const many = Object.fromEntries(Array.from({ length: 2_001 }, (_, i) => [`f/${i}.txt`, '']))
  await assert.rejects(packFolder(await folderOf(t, { ...BASE, ...many })), /holds more than 2000 files/)
})

test('an imported npm package is bundled to vendor/, with all that it imports itself', async (t) => {
  const { load, vendor } = await vendored(t, {
    'index.ts':
      "import { twice } from '@acme/math/twice'\nimport type { Unused } from 'types-only'\n" +
      'export const run = (u: Unused) => twice(2)\n',
    ...packageFiles(
      '@acme/math',
      { 'twice.js': "import { times } from 'times'\nexport const twice = (n) => times(n, 2)\n" },
      { type: 'module', exports: { './twice': './twice.js' } },
    ),
    ...packageFiles('times', { 'index.js': 'exports.times = (a, b) => a * b\n' }),
  })
  assert.deepEqual(vendor, ['vendor/@acme/math/twice.mjs'])
  const { twice } = await load('@acme/math/twice')
  assert.equal((twice as (n: number) => number)(21), 42)
})

test('a CommonJS package gives the names that the program imports', async (t) => {
  const { load, warnings } = await vendored(t, {
    'index.ts':
      "import old, { plus as add } from 'old'\nimport * as all from 'old'\n" +
      'export const run = () => add(1, 2) + all.minus(3, 1) + old.plus(1, 1)\n',
    ...packageFiles('old', {
      'index.js':
        "const fs = require('fs')\n" +
        'module.exports = { plus: (a, b) => a + b, minus: (a, b) => a - b, hasFs: !!fs.readFileSync }\n',
    }),
  })
  const old = await load('old')
  assert.deepEqual(Object.keys(old).sort(), ['default', 'minus', 'plus'])
  assert.deepEqual(warnings, [])
})

test('a file that is named like a package does not hide the package', async (t) => {
  const { load } = await vendored(t, {
    'index.ts': "import { a } from 'one'\nexport const run = () => a\n",
    one: 'just a file',
    ...packageFiles('one', { 'index.js': 'export const a = 1\n' }, { type: 'module' }),
  })
  assert.equal((await load('one'))['a'], 1)
})

test('what two packages share exists once', async (t) => {
  const { load, vendor } = await vendored(t, {
    'index.ts': "import { a } from 'one'\nimport { b } from 'two'\nexport const run = () => a === b\n",
    ...packageFiles('one', { 'index.js': "export { state as a } from 'state'\n" }, { type: 'module' }),
    ...packageFiles('two', { 'index.js': "export { state as b } from 'state'\n" }, { type: 'module' }),
    ...packageFiles('state', { 'index.js': 'export const state = {}\n' }, { type: 'module' }),
  })
  assert.equal((await load('one'))['a'], (await load('two'))['b'])
  assert.equal(vendor.length, 3)
})

test('an alias of tsconfig.json is not taken for a package that could be installed', async (t) => {
  const program = { 'workflow.jsonc': '{"slug":"a"}', 'index.ts': "import '@lib/greet'\nexport const run = () => 1\n" }
  const paths = '{ // ours\n "compilerOptions": { "paths": { "@lib/*": ["./lib/*"], "~": ["./x"] }, }, }'
  for (const at of ['tsconfig.json', '../tsconfig.json']) {
    const parent = await folderOf(t, {
      ...Object.fromEntries(Object.entries(program).map(([file, text]) => [`wf/${file}`, text])),
      [path.join('wf', at)]: paths,
    })
    const { message, next } = await failureOf(packFolder(path.join(parent, 'wf')))
    assert.match(
      message,
      /`@lib\/greet` is an alias \(`@lib\/\*`\) of .*tsconfig\.json, and a deploy does not know aliases/,
    )
    assert.match(next, /relative path/)
    assert.doesNotMatch(message + next, /npm install/)
  }
})

test('what a package requires and is not installed is told as that, and is not advised to be installed', async (t) => {
  const folder = await folderOf(t, {
    'workflow.jsonc': '{"slug":"a"}',
    'index.ts': "import knex from 'knex'\nexport const run = () => knex\n",
    ...packageFiles('knex', { 'index.js': "module.exports = () => require('mariadb/callback')\n" }),
  })
  const { message, next } = await failureOf(packFolder(folder))
  assert.match(message, /knex\/index\.js:1:\d+: Could not resolve "mariadb\/callback"/)
  assert.match(next, /`knex` asks for `mariadb`.*optional/)
  assert.doesNotMatch(next, /npm install/)
})

test('a package that needs a binary of some platform is not called an addon', async (t) => {
  const folder = await folderOf(t, {
    'workflow.jsonc': '{"slug":"a"}',
    'index.ts': "import ffmpeg from 'ffmpeg'\nexport const run = () => ffmpeg\n",
    ...packageFiles('ffmpeg', { 'index.js': '' }, { optionalDependencies: { '@ffmpeg/darwin-arm64': '1' } }),
  })
  const { message } = await failureOf(packFolder(folder))
  assert.match(message, /^`ffmpeg` brings a binary for each platform \(`@ffmpeg\/darwin-arm64` and the like\)/)
})

test('native addons are refused, those that hide from the bundler too', async (t) => {
  const program = { 'workflow.jsonc': '{"slug":"a"}', 'index.ts': "import x from 'fast'\nexport const run = () => x\n" }
  const open = packageFiles('fast', {
    'index.js': "module.exports = require('./build/fast.node')\n",
    'build/fast.node': '',
  })
  const hidden = packageFiles(
    'fast',
    { 'index.js': 'module.exports = 1\n' },
    { optionalDependencies: { '@fast/linux-x64': '1' } },
  )
  for (const files of [open, hidden]) {
    await assert.rejects(
      packFolder(await folderOf(t, { ...program, ...files })),
      /`fast.*` (is a native addon|brings a binary)/,
    )
  }
})
