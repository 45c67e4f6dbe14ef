import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdtemp, readdir, readFile, rm, stat, truncate, utimes, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { createGunzip } from 'node:zlib'
import { createLog } from '@windlass/shared/log.ts'
import { SDK_PACKAGE_FILE } from '@windlass/shared/model/sdk-packages.ts'
import { extract } from 'tar-stream'
import { createPackages, type Packages } from '../../downloads/packages.ts'
import manifest from '../../package.json' with { type: 'json' }

const DAY_MS = 24 * 3_600_000

let root: string
let logged: string[]
let packages: Packages

before(async () => {
  root = await mkdtemp(join(tmpdir(), 'windlass-packages-test-'))
  logged = []
  packages = make('first')
})

after(async () => {
  packages.close()
  await rm(root, { recursive: true })
})

function make(folder: string): Packages {
  const log = createLog({}, 'info', { write: (line) => logged.push((JSON.parse(line) as { name: string }).name) })
  return createPackages({ folder: join(root, folder), log })
}

/** What is in a package, but for what is longer than any text of ours. */
async function unpacked(name: 'windlass' | 'windlass-cli'): Promise<Map<string, string>> {
  const { files } = await packages.current()
  const found = new Map<string, string>()
  const entries = extract()
  createReadStream((await packages.find(files[name]))!.path)
    .pipe(createGunzip())
    .pipe(entries)
  for await (const entry of entries) {
    const chunks: Buffer[] = []
    for await (const chunk of entry) if ((entry.header.size ?? 0) < 5_000_000) chunks.push(chunk as Buffer)
    found.set(entry.header.name.replace(/^package\//, ''), Buffer.concat(chunks).toString())
  }
  return found
}

function manifestIn(inside: Map<string, string>): Record<string, unknown> {
  return JSON.parse(inside.get('package.json') ?? '{}') as Record<string, unknown>
}

test('what many ask for at once is made once, and its name begins with its checksum', async () => {
  const [{ version, files }] = await Promise.all([packages.current(), packages.current(), packages.current()])
  assert.deepEqual(logged, ['packages.made'])
  assert.equal(version, manifest.version)
  for (const [name, file] of Object.entries(files)) {
    assert.equal(SDK_PACKAGE_FILE.exec(file)?.groups?.['name'], name)
    const found = await packages.find(file)
    const sum = createHash('sha256')
      .update(await readFile(found!.path))
      .digest('hex')
    assert.equal(found!.sha256, sum)
    assert.ok(file.endsWith(`-${sum.slice(0, 16)}.tgz`), file)
  }
})

test('the same sources give the same bytes, elsewhere too', async () => {
  const other = make('second')
  try {
    assert.deepEqual(await other.current(), await packages.current())
  } finally {
    other.close()
  }
})

test('`windlass` is code and types, with the types of Node, and asks for nothing else', async () => {
  const inside = await unpacked('windlass')
  const own = [...inside.keys()].filter((name) => !name.startsWith('node_modules/'))
  assert.deepEqual(own.toSorted(), ['README.md', 'client.d.ts', 'client.js', 'index.d.ts', 'index.js', 'package.json'])
  for (const name of ['client.js', 'index.js'])
    for (const [, from = ''] of inside.get(name)!.matchAll(/^(?:import|export)\b[^"';]*["']([^"']+)["']/gm))
      assert.match(from, /^node:/, `${name} imports ${from}`)
  assert.ok(inside.get('client.js')!.length < 40_000, 'the client has brought something along')
  asksForNothing(inside, ['@types/node'])
  assert.ok(inside.has('node_modules/@types/node/index.d.ts') && inside.has('node_modules/undici-types/index.d.ts'))
})

test('`windlass-cli` is the command with its template, and neither agent nor coordinator', async () => {
  const inside = await unpacked('windlass-cli')
  asksForNothing(inside, ['esbuild-wasm'])
  assert.deepEqual(manifestIn(inside)['bin'], { windlass: 'bin/windlass.mjs' })
  assert.match(inside.get('bin/windlass.mjs')!, new RegExp(`'${manifest.version.replaceAll('.', '\\.')}\\\\n'`))
  assert.ok(inside.has('templates/hello/index.ts') && inside.has('node_modules/esbuild-wasm/esbuild.wasm'))
  assert.match(inside.get('LICENCES.txt')!, /^The command contains[^]*== commander \d/)
  assert.doesNotMatch(inside.get('LICENCES.txt')!, /== (postgres|ws|hyper-express) /)
})

/** npm installs it without a look at any registry: what it depends on lies in it. */
function asksForNothing(inside: Map<string, string>, bundled: string[]): void {
  const { dependencies, bundleDependencies, engines, ...rest } = manifestIn(inside)
  assert.deepEqual(Object.keys(dependencies as object), bundled)
  assert.deepEqual(bundleDependencies, bundled)
  assert.deepEqual(engines, { node: '>=20' })
  for (const field of ['scripts', 'optionalDependencies', 'peerDependencies']) assert.equal(rest[field], undefined)
  for (const name of bundled) assert.ok(inside.has(`node_modules/${name}/package.json`), name)
}

test('what somebody has removed is made again', async () => {
  const { files } = await packages.current()
  await rm(join(root, 'first', files.windlass))
  assert.ok(await packages.find(files.windlass))
  assert.deepEqual((await packages.current()).files, files)
})

/** A file as an earlier version has made it. */
async function earlierOf(version: string): Promise<string> {
  const text = `the package of ${version}`
  const name = `windlass-${version}-${createHash('sha256').update(text).digest('hex').slice(0, 16)}.tgz`
  await writeFile(join(root, 'first', name), text)
  return name
}

test('a damaged package is not handed out: one of now is made again, and an earlier one is gone', async () => {
  const { files } = await packages.current()
  const { size } = await stat(join(root, 'first', files.windlass))
  const earlier = await earlierOf('0.0.7')
  await truncate(join(root, 'first', files.windlass), 1000)
  await writeFile(join(root, 'first', earlier), 'other bytes')
  const found = await packages.find(files.windlass)
  assert.equal((await stat(found!.path)).size, size)
  assert.equal(await packages.find(earlier), undefined)
  assert.ok(logged.includes('packages.damaged'))
})

test('an earlier package is handed out for as long as it is asked for, and nothing else of the folder', async () => {
  const old = new Date(Date.now() - 200 * DAY_MS)
  const [asked, forgotten] = [await earlierOf('0.0.9'), await earlierOf('0.0.8')]
  await writeFile(join(root, 'first', 'secret.key'), 'secret')
  for (const name of [asked, forgotten]) await utimes(join(root, 'first', name), old, old)
  assert.equal((await packages.find(asked))?.path, join(root, 'first', asked))
  // What is made anew removes what is old.
  const { files } = await packages.current()
  await rm(join(root, 'first', files['windlass-cli']))
  await packages.current()
  assert.equal((await packages.find(asked))?.path, join(root, 'first', asked))
  assert.equal((await readdir(join(root, 'first'))).includes(forgotten), false)
  for (const name of [forgotten, 'secret.key', '..', '__proto__', `../first/${asked}`, `${asked}/..`])
    assert.equal(await packages.find(name), undefined, name)
})

test('what cannot be made is not tried again for everybody who asks', async () => {
  await writeFile(join(root, 'no-folder'), '')
  const broken = make('no-folder')
  try {
    for (let i = 0; i < 3; i++) await assert.rejects(broken.current(), /could not be made/)
    assert.equal(logged.filter((name) => name === 'packages.failed').length, 1)
  } finally {
    broken.close()
  }
})
