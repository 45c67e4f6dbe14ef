import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readFile, rm, stat, utimes, writeFile } from 'node:fs/promises'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { fillDisk } from '@windlass/shared/test/_kit/fill-disk.ts'
import { aZombie } from '@windlass/shared/test/_kit/processes.ts'
import { pause } from '@windlass/shared/time.ts'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { EXIT, type AgentRefusal } from '../exit-codes.ts'
import { LockWatch, lookByNumber, thisHolder } from '../lock-holder.ts'
import { uptimeMs } from '../os/process-id.ts'
import { lockState } from '../state-lock.ts'
import { aFolder, aLog } from './_kit/an-agent.ts'
import { aSmallDisk } from './_kit/small-disk.ts'

const MIB = 1024 * 1024
const ROUNDS = 20

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

/** One of an earlier boot of this machine; undefined where machines have no names, as in a container. */
function ofEarlierBoot() {
  const me = thisHolder()
  return me?.machine === undefined ? undefined : JSON.stringify({ ...me, boot: 'the one before' })
}

const noMachine = 'this machine has no name, or this is a container'

test('the lock of an earlier boot of this machine is taken at once', async (t) => {
  const holder = ofEarlierBoot()
  if (!holder) return t.skip(noMachine)
  // There the machine seems to have started within the last second.
  const young = () => ['--time', '--boottime', `-${Math.floor(uptimeMs()! / 1000)}`, '--fork', '--kill-child=SIGKILL']
  if (spawnSync('unshare', [...young(), 'true']).status !== 0) return t.skip('no time namespace can be made here')
  const { folder, file } = await aLockFolder(t)
  await writeFile(file, holder)
  await pause(2_000)
  const program = path.join(import.meta.dirname, 'programs', 'holds-lock.ts')
  const child = spawn('unshare', [...young(), process.execPath, program, folder, '100'], {
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => child.kill('SIGKILL'))
  const [said] = (await once(child.stdout, 'data')) as [Buffer]
  assert.equal(said.toString(), 'locked\n')
})

test('a lock of the same machine, to go by its name, is left to the one that touches it', async (t) => {
  const holder = ofEarlierBoot()
  if (!holder) return t.skip(noMachine)
  const { folder, file } = await aLockFolder(t)
  await writeFile(file, holder)
  const touching = setInterval(() => void utimes(file, new Date(), new Date()).catch(() => {}), 20)
  t.after(() => clearInterval(touching))
  const refusal = { exitCode: EXIT.inUse, message: /on another machine/ }
  await assert.rejects(lockState(folder, { touchMs: TOUCH_MS }), refusal)
  assert.equal(await readFile(file, 'utf8'), holder)
})

test('a lock that is gone is not taken for that of a dead agent', async (t) => {
  const { file } = await aLockFolder(t)
  assert.equal(lookByNumber(file).state, 'missing')
  assert.equal(new LockWatch(file, TOUCH_MS).look(file).state, 'missing')
})

test('of many that find the lock of a dead agent at once, never two have it', async (t) => {
  const { folder, file } = await aLockFolder(t)
  let holders = 0
  let most = 0
  const start = async () => {
    try {
      const lock = await lockState(folder)
      most = Math.max(most, ++holders)
      await pause(Math.random() * 5)
      holders -= 1
      await lock.release()
    } catch (error) {
      assert.equal((error as AgentRefusal).exitCode, EXIT.inUse)
    }
  }
  for (let round = 0; round < ROUNDS; round++) {
    await writeFile(file, JSON.stringify({ pid: 1 << 30, started: '1' }))
    await Promise.all(Array.from({ length: 12 }, () => pause(Math.random() * 30).then(start)))
  }
  assert.equal(most, 1)
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
