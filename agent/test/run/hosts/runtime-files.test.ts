import assert from 'node:assert/strict'
import { rmSync } from 'node:fs'
import { mkdir, readdir, readFile, rm, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { fillDisk } from '@windlass/shared/test/_kit/fill-disk.ts'
import { diskTrouble } from '../../../disk-full.ts'
import { prepareRuntime, removeOtherRuntimes } from '../../../run/hosts/runtime-files.ts'
import { aFolder } from '../../_kit/an-agent.ts'
import { aSmallDisk } from '../../_kit/small-disk.ts'

test('a runtime that lost a file in a power cut is built anew, and one that is whole is not', async (t) => {
  const { folder, remove } = await aFolder()
  t.after(remove)
  const runtime = path.join(folder, 'runtime')
  const { hostFile } = await prepareRuntime(runtime)
  const home = path.dirname(hostFile)
  const sizes = async () => {
    const names = (await readdir(home)).toSorted()
    return Promise.all(names.map(async (name) => [name, (await stat(path.join(home, name))).size] as const))
  }
  const built = await sizes()
  assert.deepEqual(
    built.filter(([, bytes]) => bytes === 0),
    [],
  )
  const inode = async () => (await stat(home)).ino
  const before = await inode()
  await prepareRuntime(runtime)
  assert.equal(await inode(), before)
  for (const [name] of built) {
    await writeFile(path.join(home, name), '')
    await prepareRuntime(runtime)
    assert.deepEqual(await sizes(), built, `${name} was empty`)
    await rm(path.join(home, name))
    await prepareRuntime(runtime)
    assert.deepEqual(await sizes(), built, `${name} was gone`)
  }
  assert.deepEqual(await readdir(runtime), [path.basename(home)])
})

/** A runtime as an installed agent comes with it, and the state folder of that. */
async function aPackedOne(t: TestContext) {
  const { folder, remove } = await aFolder()
  t.after(remove)
  const { hostFile } = await prepareRuntime(path.join(folder, 'runtime'))
  const from = path.dirname(hostFile)
  const packed = { folder: from, digest: await readFile(path.join(from, 'digest'), 'utf8') }
  return { packed, name: packed.digest.slice(0, 16), folder, state: path.join(folder, 'state') }
}

test('an installed agent keeps its runtime in the state folder, whatever becomes of its program', async (t) => {
  const { packed, state, name } = await aPackedOne(t)
  const files = await prepareRuntime(state, packed)
  assert.equal(files.hostFile, path.join(state, name, 'host.cjs'))
  const texts = () => Promise.all(Object.values(files).map((file) => readFile(file, 'utf8')))
  const before = await texts()
  await writeFile(path.join(packed.folder, 'host.cjs'), 'of another version')
  assert.deepEqual(await prepareRuntime(state, packed), files)
  assert.deepEqual(await texts(), before)
  // A program with the agent's own user can change both, and what the agent came with tells.
  for (const file of ['host.cjs', 'digest']) await rm(path.join(state, name, file))
  await assert.rejects(prepareRuntime(state, packed), /did not come with this agent/)
  assert.deepEqual(await readdir(state), [name])
})

test('what a kill has cut off goes at the next start, and other runtimes when nobody uses them', async (t) => {
  const { packed, state, name } = await aPackedOne(t)
  const [used, unused] = ['0123456789abcdef', 'fedcba9876543210']
  const others = [used, unused, `${name}-aB3xyz`, `${name}-aB3xyz-damaged`]
  for (const each of [...others, 'of-somebody-else']) await mkdir(path.join(state, each, 'more'), { recursive: true })
  const files = await prepareRuntime(state, packed)
  const log = (fact: string) => assert.fail(fact)
  const all = (await readdir(state)).toSorted()
  assert.equal(all.length, others.length + 2)
  await removeOtherRuntimes(files, { found: [{ runtime: used }, {}], log })
  assert.deepEqual((await readdir(state)).toSorted(), all, 'an agent of before has not said which it used')
  await removeOtherRuntimes(files, { found: [{ runtime: used }], log })
  assert.deepEqual((await readdir(state)).toSorted(), [used, name, 'of-somebody-else'].toSorted())
  await removeOtherRuntimes(files, { log })
  assert.deepEqual((await readdir(state)).toSorted(), [name, 'of-somebody-else'].toSorted())
})

test('a full disk leaves no half of a runtime, and says what it is', async (t) => {
  const { packed, folder, name } = await aPackedOne(t)
  const disk = await aSmallDisk(folder, 1024 * 1024)
  if (!disk) return t.skip('no file system can be mounted here')
  try {
    const state = path.join(disk.folder, 'runtime')
    await mkdir(state)
    const filler = path.join(disk.folder, 'filler')
    fillDisk(filler)
    const error = await prepareRuntime(state, packed).catch((error: unknown) => error)
    assert.match(diskTrouble(error, disk.folder, 'WINDLASS_AGENT_HOME') ?? String(error), /The disk of .* is full\./)
    assert.deepEqual(await readdir(state), [])
    rmSync(filler)
    await prepareRuntime(state, packed)
    assert.deepEqual(await readdir(state), [name])
  } finally {
    disk.remove()
  }
})
