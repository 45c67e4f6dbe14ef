import assert from 'node:assert/strict'
import { readFile, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test } from 'node:test'
import { aZombie } from '@windlass/shared/test/_kit/processes.ts'
import { EXIT } from '../exit-codes.ts'
import { lockState } from '../state-lock.ts'
import { aFolder } from './_kit/an-agent.ts'

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
