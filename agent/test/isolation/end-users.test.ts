import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { readdirSync, readlinkSync } from 'node:fs'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { pause } from '@windlass/shared/time.ts'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { killerOf, killUsers } from '../../isolation/end-users.ts'
import { asUser } from '../../isolation/uids.ts'
import { uidsOf } from '../../os/process-table.ts'
import { NEEDS_ROOT, ofUsers } from './requirements.ts'

const ONCE = { tries: 1, eachMs: 60_000 }

/** A process of that user, and its end. */
async function aProcess(t: TestContext, uid: number) {
  const child = spawn('setpriv', [...asUser(uid), 'sleep', '300'], { stdio: 'ignore' })
  t.after(() => child.kill('SIGKILL'))
  await untilPolled('it is that user', () => uidsOf(child.pid!).includes(uid))
  return child
}

test('all that runs as users of some ranges is killed, and nothing of others', { skip: NEEDS_ROOT }, async (t) => {
  const { first } = ofUsers().uids
  const ranges = [
    { first: first + 1, last: first + 3 },
    { first: first + 5, last: first + 6 },
  ]
  const children = await Promise.all([1, 3, 4, 5, 7].map((offset) => aProcess(t, first + offset)))
  const ends = Promise.all([0, 1, 3].map((at) => once(children[at]!, 'exit')))
  assert.equal(await killUsers(ranges, ONCE), 'done')
  assert.deepEqual(
    await ends,
    Array.from({ length: 3 }, () => [null, 'SIGKILL']),
  )
  assert.deepEqual(
    [2, 4].map((at) => uidsOf(children[at]!.pid!)[0]),
    [first + 4, first + 7],
  )
})

test('what has any power besides that of becoming somebody kills nothing', { skip: NEEDS_ROOT }, async (t) => {
  const { first: uid } = ofUsers().uids
  const { pid } = await aProcess(t, uid)
  const [setpriv, ...args] = killerOf([{ first: uid, last: uid }])
  const more = args.map((arg) => arg.replace('+setgid', '+setgid,+chown'))
  assert.notDeepEqual(more, args)
  assert.equal(spawnSync(setpriv, more, { stdio: 'ignore' }).status, 1)
  assert.deepEqual(uidsOf(pid!), Array(4).fill(uid))
})

/** What would kill all of that user, and stands still in place of it. */
async function aKillerThatStands(t: TestContext, uid: number): Promise<number> {
  const [file, ...args] = killerOf([{ first: uid, last: uid }])
  const standStill = "console.log('there'); for (;;) Atomics.wait(new Int32Array(new SharedArrayBuffer(4)), 0, 0, 1)"
  const changed = args.map((arg) => arg.replace("process.kill(-1, 'SIGKILL')", `{ ${standStill} }`))
  assert.notDeepEqual(changed, args)
  const child = spawn(file, changed, { stdio: ['ignore', 'pipe', 'ignore'] })
  t.after(() => child.kill('SIGKILL'))
  await once(child.stdout, 'data')
  return child.pid!
}

test('a program gets into nothing that is to kill it, and opens no debugger', { skip: NEEDS_ROOT }, async (t) => {
  const { first: uid } = ofUsers().uids
  const pid = await aKillerThatStands(t, uid)
  assert.deepEqual(uidsOf(pid), Array(4).fill(uid))
  const as = (script: string) => spawnSync('setpriv', [...asUser(uid), 'sh', '-c', script], { stdio: 'ignore' }).status
  assert.notEqual(as(`exec 3<>/proc/${pid}/mem`), 0)
  assert.notEqual(as(`exec 3</proc/${pid}/environ`), 0)
  const before = filesOf(pid)
  assert.equal(as(`kill -USR1 ${pid}`), 0)
  // A debugger listens on a socket, some time after the signal has come.
  for (let looks = 0; looks < 50; looks++, await pause(10)) assert.deepEqual(filesOf(pid), before)
})

const filesOf = (pid: number) => readdirSync(`/proc/${pid}/fd`).map((name) => readlinkSync(`/proc/${pid}/fd/${name}`))
