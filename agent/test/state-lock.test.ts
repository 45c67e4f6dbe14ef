import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { fillDisk } from '@windlass/shared/test/_kit/fill-disk.ts'
import { aZombie } from '@windlass/shared/test/_kit/processes.ts'
import { EXIT } from '../exit-codes.ts'
import { lockState } from '../state-lock.ts'
import { aFolder } from './_kit/an-agent.ts'
import { aSmallDisk } from './_kit/small-disk.ts'

const MIB = 1024 * 1024

test('a folder that a live process has is refused, and one that a zombie has is taken', async () => {
  const { folder, remove } = await aFolder()
  const zombie = await aZombie()
  try {
    const lock = await lockState(folder)
    await assert.rejects(lockState(folder), { exitCode: EXIT.inUse, message: new RegExp(`Process ${process.pid} `) })
    await lock.release()
    const file = path.join(folder, 'agent.lock')
    await writeFile(file, JSON.stringify({ pid: zombie.pid, started: zombie.started }))
    const taken = await lockState(folder)
    assert.equal(JSON.parse(await readFile(file, 'utf8')).pid, process.pid)
    await taken.release()
  } finally {
    await zombie.end()
    await remove()
  }
})

test('on a full disk the lock of a dead agent is taken over in its place', async (t) => {
  const { folder, remove } = await aFolder()
  const disk = await aSmallDisk(folder, MIB)
  const zombie = await aZombie()
  t.after(async () => {
    await zombie.end()
    disk?.remove()
    await remove()
  })
  if (!disk) return t.skip('no file system can be mounted here')
  const file = path.join(disk.folder, 'agent.lock')
  await writeFile(file, JSON.stringify({ pid: zombie.pid, started: `${zombie.started} and more` }))
  fillDisk(path.join(disk.folder, 'ballast'))
  const lock = await lockState(disk.folder)
  assert.equal(JSON.parse(await readFile(file, 'utf8')).pid, process.pid)
  await assert.rejects(lockState(disk.folder), { exitCode: EXIT.inUse })
  await lock.release()
  fillDisk(path.join(disk.folder, 'ballast'))
  await assert.rejects(lockState(disk.folder), { code: 'ENOSPC' })
})
