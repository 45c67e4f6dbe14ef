import assert from 'node:assert/strict'
import { readFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { startFake } from '../_kit/fake-service.ts'
import { folderOf, runCli } from '../_kit/run-cli.ts'

const FILES = {
  windlass: 'windlass-0.2.0-0123456789abcdef.tgz',
  'windlass-cli': 'windlass-cli-0.2.0-fedcba9876543210.tgz',
}
const answers = { 'service.download': () => ({ version: '0.2.0', files: FILES }) }

interface Manifest {
  dependencies?: Record<string, string>
  devDependencies?: Record<string, string>
}

async function manifestIn(folder: string): Promise<Manifest> {
  return JSON.parse(await readFile(path.join(folder, 'package.json'), 'utf8')) as Manifest
}

test('upgrade-sdk writes the addresses where they stood, and leaves the rest as it is written', async (t) => {
  const { url, asked } = await startFake(t, answers)
  const before = `{
    "name":  "mine",
    "devDependencies": { "windlass": "http://old/downloads/windlass-0.1.0-0000000000000000.tgz" },
    "scripts": { "a": "b" }
}
`
  const cwd = await folderOf(t, { 'package.json': before })
  const { code, stdout, stderr } = await runCli(['upgrade-sdk'], { url, cwd })
  assert.equal(code, 0, stderr)
  assert.deepEqual(asked[0]?.args, { file: 'packages.json' })
  assert.equal(
    stdout,
    `windlass  http://old/downloads/windlass-0.1.0-0000000000000000.tgz → ${url}/downloads/${FILES.windlass}\n` +
      `windlass-cli  ${url}/downloads/${FILES['windlass-cli']}\n`,
  )
  assert.match(stderr, /^Next: npm install$/m)
  const text = await readFile(path.join(cwd, 'package.json'), 'utf8')
  assert.match(text, /^ {4}"name": {2}"mine",\n[^]*"scripts": \{ "a": "b" \}\n\}\n$/m)
  const { dependencies, devDependencies } = await manifestIn(cwd)
  assert.equal(dependencies, undefined)
  assert.deepEqual(devDependencies, {
    windlass: `${url}/downloads/${FILES.windlass}`,
    'windlass-cli': `${url}/downloads/${FILES['windlass-cli']}`,
  })
})

test('a project without them gets both, and the second time nothing changes', async (t) => {
  const { url } = await startFake(t, answers)
  const folder = await folderOf(t, { 'sub/package.json': '{}' })
  const first = await runCli(['--json', 'upgrade-sdk', 'sub'], { url, cwd: folder })
  const { changes } = JSON.parse(first.stdout) as { changes: unknown }
  assert.deepEqual(changes, [
    { name: 'windlass', before: null, now: `${url}/downloads/${FILES.windlass}` },
    { name: 'windlass-cli', before: null, now: `${url}/downloads/${FILES['windlass-cli']}` },
  ])
  const { dependencies, devDependencies } = await manifestIn(path.join(folder, 'sub'))
  assert.deepEqual(Object.keys(dependencies ?? {}), ['windlass'])
  assert.deepEqual(Object.keys(devDependencies ?? {}), ['windlass-cli'])
  const again = await runCli(['upgrade-sdk', 'sub'], { url, cwd: folder })
  assert.match(again.stdout, /has the packages of version 0\.2\.0 already\n$/)
})

test('a package.json that is none is refused with what to do, before anything is asked', async (t) => {
  const { url, asked } = await startFake(t, answers)
  const refusals: [content: string | undefined, says: RegExp][] = [
    [undefined, /There is no .*package\.json[^]*Next: windlass upgrade-sdk path\/to\/project/],
    ['{ "name": \n oops }', /is not JSON: InvalidSymbol in line 2[^]*Next: mend package\.json/],
    ['[]', /holds no object/],
    ['{ "dependencies": [] }', /`dependencies` of .* is no object[^]*Next: write `"dependencies": \{\}`/],
  ]
  for (const [content, says] of refusals) {
    const cwd = await folderOf(t, content === undefined ? {} : { 'package.json': content })
    const { code, stderr } = await runCli(['upgrade-sdk'], { url, cwd })
    assert.equal(code, 2, stderr)
    assert.match(stderr, says)
    if (content !== undefined) assert.equal(await readFile(path.join(cwd, 'package.json'), 'utf8'), content)
  }
  assert.deepEqual(asked, [])
})

test('an answer that names other files than packages is refused', async (t) => {
  const evil = { ...FILES, windlass: '../../evil.tgz' }
  const { url } = await startFake(t, { 'service.download': () => ({ version: '1', files: evil }) })
  const cwd = await folderOf(t, { 'package.json': '{}' })
  const { code, stderr } = await runCli(['upgrade-sdk'], { url, cwd })
  assert.equal(code, 2)
  assert.match(stderr, /does not say which packages there are/)
})

test('init writes the packages of the service, and none where it has none or is away', async (t) => {
  const { url } = await startFake(t, answers)
  const cwd = await folderOf(t)
  const made = await runCli(['--json', 'init', 'with'], { url, cwd })
  assert.equal(made.code, 0, made.stderr)
  const addresses = {
    windlass: `${url}/downloads/${FILES.windlass}`,
    'windlass-cli': `${url}/downloads/${FILES['windlass-cli']}`,
  }
  assert.deepEqual((JSON.parse(made.stdout) as { dependencies: unknown }).dependencies, addresses)
  const { dependencies, devDependencies } = await manifestIn(path.join(cwd, 'with'))
  assert.deepEqual({ ...dependencies, ...devDependencies }, addresses)
  const older = await startFake(t)
  for (const [name, address] of [
    ['older', older.url],
    ['away', 'http://127.0.0.1:9'],
  ] as const) {
    const without = await runCli(['init', name], { url: address, cwd })
    assert.equal(without.code, 0, without.stderr)
    assert.match(without.stderr, /^Next: windlass dev /)
    assert.equal((await manifestIn(path.join(cwd, name))).dependencies, undefined)
  }
})
