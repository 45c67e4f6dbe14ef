import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile, rm, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { fillDisk } from '@windlass/shared/test/_kit/fill-disk.ts'
import { aZombie } from '@windlass/shared/test/_kit/processes.ts'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { EXIT } from '../exit-codes.ts'
import { thisHolder } from '../lock-holder.ts'
import { lockState } from '../state-lock.ts'
import { aFolder, aLog } from './_kit/an-agent.ts'
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

const CONTAINER = ['--pid', '--fork', '--kill-child=SIGKILL', '--mount-proc']
const noContainers = () =>
  spawnSync('unshare', [...CONTAINER, 'true']).status === 0 ? false : 'no pid namespace can be made here'

/** So seldom that a busy machine does not miss four of them. */
const TOUCH_MS = 400

/** A process that has the lock, numbered as in a container. */
async function aContainer(t: TestContext, folder: string) {
  const program = path.join(import.meta.dirname, 'programs', 'holds-lock.ts')
  const args = [...CONTAINER, process.execPath, program, folder, String(TOUCH_MS)]
  const child = spawn('unshare', args, { stdio: ['ignore', 'pipe', 'inherit'] })
  const exited = once(child, 'exit')
  const end = async () => {
    child.kill('SIGKILL')
    await exited
  }
  t.after(end)
  await once(child.stdout, 'data')
  return { end }
}

async function aLockFolder(t: TestContext) {
  const { folder, remove } = await aFolder()
  t.after(remove)
  return { folder, file: path.join(folder, 'agent.lock') }
}

test('a folder that an agent of another container has is refused until that one is killed', async (t) => {
  const why = noContainers()
  if (why) return t.skip(why)
  const { folder, file } = await aLockFolder(t)
  const container = await aContainer(t, folder)
  const message = /another container.*process 1 there.*Stop it.*volume of its own/
  await assert.rejects(lockState(folder, { touchMs: TOUCH_MS }), { exitCode: EXIT.inUse, message })
  await container.end()
  const lock = await lockState(folder, { touchMs: TOUCH_MS })
  assert.equal(JSON.parse(await readFile(file, 'utf8')).pid, process.pid)
  await lock.release()
})

/** As of an agent on another machine. */
const ELSEWHERE = { pid: 1, started: '1', boot: 'another', namespace: 'pid:[1]' }

test('a lock that nobody touches any more is taken, and a stop ends the wait for it', async (t) => {
  const { folder, file } = await aLockFolder(t)
  await writeFile(file, JSON.stringify(ELSEWHERE))
  const signal = AbortSignal.timeout(50)
  await assert.rejects(lockState(folder, { signal }), { exitCode: EXIT.stopped })
  assert.deepEqual(JSON.parse(await readFile(file, 'utf8')), ELSEWHERE)
  const { lines, log } = aLog()
  const lock = await lockState(folder, { log, touchMs: 24 })
  assert.deepEqual(
    lines.map(({ name, pid }) => ({ name, pid })),
    [{ name: 'state.lock.waiting', pid: 1 }],
  )
  await lock.release()
})

test('of two that wait for the same lock one gets it, and the other is refused', async (t) => {
  const { folder, file } = await aLockFolder(t)
  await writeFile(file, JSON.stringify(ELSEWHERE))
  const both = await Promise.allSettled([0, 1].map(() => lockState(folder, { touchMs: 24 })))
  assert.deepEqual(both.map(({ status }) => status).toSorted(), ['fulfilled', 'rejected'])
  for (const each of both) if (each.status === 'fulfilled') await each.value.release()
})

test('the lock of an earlier boot of this machine is taken at once', async (t) => {
  const { folder, file } = await aLockFolder(t)
  const me = thisHolder()!
  if (me.machine === undefined) return t.skip('this machine has no name, or this is a container')
  await writeFile(file, JSON.stringify({ ...me, boot: 'the one before' }))
  // It would wait for hours otherwise.
  const lock = await lockState(folder, { touchMs: 3_600_000 })
  await lock.release()
})

test('a holder touches its lock, and leaves that of an agent which has taken it over', async (t) => {
  const { folder, file } = await aLockFolder(t)
  const lock = await lockState(folder, { touchMs: 20 })
  const touched = async () => (await stat(file)).mtimeMs
  const before = await touched()
  await untilPolled('a touch', async () => (await touched()) !== before)
  await rm(file)
  await writeFile(file, JSON.stringify(ELSEWHERE))
  await lock.release()
  assert.deepEqual(JSON.parse(await readFile(file, 'utf8')), ELSEWHERE)
})
