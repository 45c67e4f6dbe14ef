import assert from 'node:assert/strict'
import { createHash } from 'node:crypto'
import { createReadStream } from 'node:fs'
import { mkdir, mkdtemp, readdir, readFile, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { dirname, join } from 'node:path'
import { after, before, test } from 'node:test'
import { createGunzip } from 'node:zlib'
import { createLog } from '@windlass/shared/log.ts'
import { extract } from 'tar-stream'
import { createDownloads, type Downloads } from '../../downloads/downloads.ts'
import { readSums, SUMS } from '../../downloads/sums.ts'
import manifest from '../../package.json' with { type: 'json' }

const PLATFORM = `${process.platform}-${process.arch}`
const WHOLE = `windlass-agent-${manifest.version}-${PLATFORM}.tar.gz`
const NPM = `windlass-agent-${manifest.version}.tgz`

let root: string
let logged: string[]
let downloads: Downloads
/** With a small file in place of Node, which is 120 MB long: for what is made again and again. */
let light: Downloads

before(async () => {
  root = await mkdtemp(join(tmpdir(), 'windlass-downloads-test-'))
  logged = []
  downloads = make('first')
  await writeFile(join(root, 'node'), 'no Node')
  light = make('light', { node: join(root, 'node') })
})

after(async () => {
  downloads.close()
  light.close()
  await rm(root, { recursive: true })
})

function make(name: string, more: { given?: string; node?: string } = {}): Downloads {
  const log = createLog({}, 'info', { write: (line) => logged.push((JSON.parse(line) as { name: string }).name) })
  return createDownloads({ folder: join(root, name), given: undefined, ...more, log })
}

interface Packed {
  mode: number
  mtime: number
  text: string
}

/** What is in an archive; of a program of 120 MB its length will do. */
async function unpacked(path: string): Promise<Map<string, Packed>> {
  const found = new Map<string, Packed>()
  const entries = extract()
  createReadStream(path).pipe(createGunzip()).pipe(entries)
  for await (const entry of entries) {
    const { name, mode, mtime, size } = entry.header
    const chunks: Buffer[] = []
    for await (const chunk of entry) if (size < 10_000_000) chunks.push(chunk as Buffer)
    found.set(name, { mode, mtime: mtime?.getTime() ?? -1, text: Buffer.concat(chunks).toString() || String(size) })
  }
  return found
}

async function found(name: string, from = downloads) {
  const file = await from.find(name)
  assert.ok(file, `${name} is not there`)
  return file
}

test('what many ask for at once is made once, and is what its checksum says', async () => {
  const [sums, whole] = await Promise.all([downloads.sums(), found(WHOLE), found(NPM), downloads.sums()])
  assert.deepEqual(logged, ['downloads.made'])
  const bytes = await readFile(whole.path)
  const sum = createHash('sha256').update(bytes).digest('hex')
  assert.equal(whole.sha256, sum)
  assert.equal(readSums(sums).get(WHOLE), sum)
  assert.deepEqual([...readSums(sums).keys()].toSorted(), [WHOLE, NPM].toSorted())
})

test('the archive has the agent, its Node, its units, and what it owes to others', async () => {
  const inside = await unpacked((await found(WHOLE)).path)
  const folder = WHOLE.replace('.tar.gz', '')
  const mode = (name: string) => inside.get(`${folder}/${name}`)?.mode
  for (const program of ['bin/node', 'bin/windlass', 'uninstall.sh', 'release-cgroup.sh'])
    assert.equal(mode(program), 0o755, program)
  for (const name of [
    'lib/windlass.mjs',
    'lib/runtime/host.cjs',
    'lib/runtime/engine.cjs',
    'lib/runtime/digest',
    'systemd/windlass-agent.service',
  ])
    assert.equal(mode(name), 0o644, name)
  assert.match(inside.get(`${folder}/LICENCES.txt`)?.text ?? '', /== ws \d.*\n[^]*== zod \d/)
  assert.equal(inside.get(`${folder}/VERSION`)?.text, `${manifest.version}\n`)
  assert.ok([...inside.values()].every(({ mtime }) => mtime === 0))
})

test('the package for npm has no dependencies, no install script, and no Node', async () => {
  const inside = await unpacked((await found(NPM)).path)
  const own = JSON.parse(inside.get('package/package.json')?.text ?? '{}') as Record<string, unknown>
  assert.deepEqual(own['bin'], { windlass: 'bin/windlass.mjs' })
  assert.deepEqual(own['engines'], { node: '>=22.18' })
  for (const field of ['dependencies', 'scripts', 'optionalDependencies']) assert.equal(own[field], undefined)
  assert.equal(inside.has('package/bin/node'), false)
})

test('what somebody has removed is made again, and the same sources give the same bytes', async () => {
  const home = join(root, 'light')
  const before = await light.sums()
  for (const name of await readdir(home)) await rm(join(home, name), { recursive: true })
  const whole = await found(WHOLE, light)
  assert.equal(
    createHash('sha256')
      .update(await readFile(whole.path))
      .digest('hex'),
    whole.sha256,
  )
  assert.equal(await light.sums(), before)
  assert.deepEqual(await readdir(home), [whole.path.split('/').at(-2)])
})

test('where only one of the files was removed, all are made again', async () => {
  const folder = dirname((await found(NPM, light)).path)
  for (const name of [SUMS, NPM]) {
    await rm(join(folder, name))
    const file = await found(NPM, light)
    assert.equal(
      createHash('sha256')
        .update(await readFile(file.path))
        .digest('hex'),
      file.sha256,
    )
  }
})

test('what cannot be made is not tried again for everybody who asks', async () => {
  await writeFile(join(root, 'no-folder'), '')
  const broken = make('no-folder')
  try {
    for (let i = 0; i < 3; i++) await assert.rejects(broken.find(NPM), /could not be packed/)
    assert.equal(logged.filter((name) => name === 'downloads.failed').length, 1)
  } finally {
    broken.close()
  }
})

test('archives of other platforms are handed out from the folder that the settings name, and nothing else of it', async () => {
  const given = join(root, 'given')
  const foreign = `windlass-agent-${manifest.version}-linux-riscv64.tar.gz`
  await mkdir(given)
  await writeFile(join(given, foreign), 'another machine’s')
  await writeFile(join(given, 'secret.key'), 'mine')
  const other = make('first', { given })
  try {
    const sum = createHash('sha256').update('another machine’s').digest('hex')
    assert.equal(readSums(await other.sums()).get(foreign), sum)
    assert.equal((await other.find(foreign))?.path, join(given, foreign))
    for (const name of ['secret.key', `../given/${foreign}`, '..', '__proto__', 'windlass-agent-9.9.9.tgz'])
      assert.equal(await other.find(name), undefined, name)
  } finally {
    other.close()
  }
})
