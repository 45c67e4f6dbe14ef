import assert from 'node:assert/strict'
import { readdir, rm, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { prepareRuntime } from '../../../run/hosts/runtime-files.ts'
import { aFolder } from '../../_kit/an-agent.ts'

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
