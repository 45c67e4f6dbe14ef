import assert from 'node:assert/strict'
import childProcess, { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { asHelper, asUser, endUids, findPidsOf } from '../../isolation/uids.ts'
import { findAmong, groupMembers, uidsOf } from '../../os/process-table.ts'
import { NEEDS_ROOT } from './requirements.ts'

const UID = 650_004

function mocking(
  t: TestContext,
  name: 'opendirSync' | 'readdirSync' | 'readFileSync' | 'statSync',
  read: (file: unknown) => unknown,
): void {
  const real = fs[name] as (...args: unknown[]) => unknown
  t.mock.method(fs, name, (...args: unknown[]) => read(args[0]) ?? real(...args))
  syncBuiltinESMExports()
  t.after(() => {
    t.mock.restoreAll()
    syncBuiltinESMExports()
  })
}

const EMPTY = { readSync: () => null, closeSync: () => {} }

test('what no look sees, as it forks on and on, is killed with its user', { skip: NEEDS_ROOT }, async (t) => {
  const child = spawn('setpriv', [...asUser(UID), 'sleep', '300'], { stdio: 'ignore' })
  t.after(() => child.kill('SIGKILL'))
  const exited = once(child, 'exit')
  await untilPolled('it is that user', () => uidsOf(child.pid!).includes(UID))
  mocking(t, 'opendirSync', (folder) => (folder === '/proc' ? EMPTY : undefined))
  assert.equal(await endUids({ first: UID, last: UID }, null), true)
  assert.deepEqual(await exited, [null, 'SIGKILL'])
})

test('what kills the shell that is to end it is ended, unseen', { skip: NEEDS_ROOT }, async (t) => {
  const { pid } = await aProcess(t, UID + 6)
  const spawnReal = childProcess.spawn as (file: string, args: string[], ...more: unknown[]) => unknown
  // Such a process has ended it before it could do anything.
  const spawnKilled = (file: string, args: string[], ...more: unknown[]) =>
    args.includes('/bin/sh') ? spawnReal('/bin/sh', ['-c', 'kill -9 $$'], ...more) : spawnReal(file, args, ...more)
  t.mock.method(childProcess, 'spawn', spawnKilled as typeof spawn)
  mocking(t, 'opendirSync', (folder) => (folder === '/proc' ? EMPTY : undefined))
  assert.equal(await endUids({ first: UID + 6, last: UID + 6 }, null), true)
  assert.deepEqual(uidsOf(pid), [])
})

/** Whether a program of a run may trace it: its memory is open to nobody else. */
const isOpenTo = (uid: number, pid: number) =>
  spawnSync('setpriv', [...asUser(uid), 'sh', '-c', `exec 3<>/proc/${pid}/mem`], { stdio: 'ignore' }).status === 0

test('a program cannot trace what is to kill it, and speak in its place', { skip: NEEDS_ROOT }, async (t) => {
  const uid = UID + 3
  const [other, helper] = [asUser(uid), asHelper(uid)].map((as) => {
    const child = spawn('setpriv', [...as, 'sleep', '300'], { stdio: 'ignore' })
    t.after(() => child.kill('SIGKILL'))
    return child.pid!
  })
  // Setpriv itself may be traced by nobody: only what it has become is told.
  const isReady = (pid: number) => fs.readFileSync(`/proc/${pid}/comm`, 'utf8') === 'sleep\n'
  await untilPolled('both are that user', () => isReady(other!) && isReady(helper!))
  if (!isOpenTo(uid, other!)) return t.skip('no process here may trace others (Yama)')
  assert.equal(isOpenTo(uid, helper!), false)
})

test('a process that hides its memory is seen', { skip: NEEDS_ROOT }, async (t) => {
  const uid = UID + 5
  // Who becomes another user and executes nothing after that hides its memory.
  const become = `process.setgid(${uid}); process.setgroups([]); process.setuid(${uid})`
  const hide = `${become}; console.log('hidden'); setInterval(() => {}, 60_000)`
  const child = spawn(process.execPath, ['-e', hide], { stdio: ['ignore', 'pipe', 'inherit'] })
  t.after(() => child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  assert.equal(fs.statSync(`/proc/${child.pid}/environ`).uid, 0)
  assert.deepEqual(await findPidsOf(uid), [child.pid])
})

test('a process of which the first thread alone has ended lives', async (t) => {
  const numbers = (threads: number) => `Z 1 7 7 0 -1 0 0 0 0 0 0 0 0 0 20 0 ${threads} 0`
  const processes = new Map([
    [4_000_001, 2],
    [4_000_002, 1],
  ])
  mocking(t, 'readdirSync', (folder) => (folder === '/proc' ? [...processes.keys()].map(String) : undefined))
  mocking(t, 'readFileSync', (file) => {
    const [, pid, what] = /^\/proc\/(400000\d)\/(\w+)$/.exec(String(file)) ?? []
    const threads = processes.get(Number(pid)) ?? 0
    if (what === 'stat') return `${pid} (a b) c) ${numbers(threads)}`
    if (what === 'status')
      return `Name:\ta\nState:\tZ (zombie)\nUid:\t${UID}\t${UID}\t${UID}\t${UID}\nThreads:\t${threads}\n`
    return undefined
  })
  assert.deepEqual(uidsOf(4_000_001), [UID, UID, UID, UID])
  assert.deepEqual(uidsOf(4_000_002), [])
  assert.deepEqual(groupMembers(7), [4_000_001])
  const names = [...processes.keys()].map((pid) => ({ name: String(pid) }))
  const folder = { readSync: () => names.shift() ?? null, closeSync: () => {} }
  mocking(t, 'opendirSync', (path) => (path === '/proc' ? folder : undefined))
  mocking(t, 'statSync', (path) => (String(path).startsWith('/proc/400000') ? { uid: UID } : undefined))
  assert.deepEqual(await findPidsOf(UID), [4_000_001])
})

/** A process of that user, and the numbers of processes whose status is read from now on. */
async function aProcess(t: TestContext, uid: number) {
  const child = spawn('setpriv', [...asUser(uid), 'sleep', '300'], { stdio: 'ignore' })
  t.after(() => child.kill('SIGKILL'))
  await untilPolled('it is that user', () => uidsOf(child.pid!).includes(uid))
  const read: number[] = []
  mocking(t, 'readFileSync', (file) => {
    const [, pid] = /^\/proc\/(\d+)\/status$/.exec(String(file)) ?? []
    if (pid !== undefined) read.push(Number(pid))
  })
  return { pid: child.pid!, read }
}

test('the end of a run reads nothing of the processes of others', { skip: NEEDS_ROOT }, async (t) => {
  const { pid, read } = await aProcess(t, UID + 1)
  assert.equal(await endUids({ first: UID + 1, last: UID + 1 }, null), true)
  assert.deepEqual(
    read.filter((each) => each !== pid),
    [],
  )
})

test('runs that end at once share a look at all processes', { skip: NEEDS_ROOT }, async (t) => {
  const { pid } = await aProcess(t, UID + 2)
  let looks = 0
  mocking(t, 'opendirSync', (folder) => void (looks += folder === '/proc' ? 1 : 0))
  const first = findPidsOf(UID + 2)
  await Promise.resolve()
  await Promise.resolve()
  const others = await Promise.all(Array.from({ length: 20 }, () => findPidsOf(UID + 2)))
  assert.deepEqual([await first, ...others].flat(), Array(21).fill(pid))
  assert.ok(looks <= 2, `${looks} looks`)
})

for (const [looks, each] of [
  [2, 10],
  [10, 2],
] as const)
  test(`looks give way to everything else, ${looks} of ${each} processes each`, async () => {
    let isOver = false
    let turn = 0
    const atWork: { look: number; turn: number }[] = []
    const busy = (look: number) => () => {
      for (const since = performance.now(); performance.now() - since < 2;);
      atWork.push({ look, turn })
      return false
    }
    const count = () => {
      turn += 1
      if (!isOver) setImmediate(count)
    }
    setImmediate(count)
    const pids = Array.from({ length: each }, (_, at) => 4_000_000 + at)
    await Promise.all(Array.from({ length: looks }, (_, look) => findAmong(pids, busy(look))))
    isOver = true
    // A slice of 5 ms has room for three of 2 ms.
    assert.ok(new Set(atWork.map((work) => work.turn)).size >= 6, JSON.stringify(atWork))
    assert.deepEqual(
      atWork.map(({ look }) => look),
      Array.from({ length: looks }, (_, look) => Array<number>(each).fill(look)).flat(),
    )
  })
