import assert from 'node:assert/strict'
import { mkdirSync, mkdtempSync, rmSync, statSync } from 'node:fs'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { setImmediate as turn } from 'node:timers/promises'
import { FormerUsers } from '../../isolation/former-users.ts'
import { createIsolation } from '../../isolation/isolation.ts'
import { PLAIN } from '../../isolation/plan.ts'
import { keepUids } from '../../isolation/uids.ts'
import type { RunningProgram } from '../../run/program/program.ts'
import { aStage } from '../run/programs.ts'
import { NEEDS_ROOT, ofUsers } from './requirements.ts'

const UIDS = [7000, 7001, 7002]

/** Users that are all in use, and looks for what they have left, each of which the test brings to its end. */
function allUsed() {
  // The first one is their group.
  const uids = keepUids({ first: 6999, last: 7002 })
  const looks: { users: number[]; end: (staying?: number[]) => void }[] = []
  const stays: number[][] = []
  const former = new FormerUsers(
    uids,
    (users) => stays.push(users),
    async (isTheirs) => {
      const staying = await new Promise<number[]>((resolve) => {
        looks.push({ users: UIDS.filter(isTheirs), end: (those = []) => resolve(those) })
      })
      return (uid) => staying.includes(uid)
    },
  )
  for (const uid of UIDS) uids.reserve(uid)
  const nextLook = async (count: number) => {
    while (looks.length < count) await turn()
    return looks[count - 1]!
  }
  return { uids, former, looks, stays, nextLook }
}

test('one look at a time serves all users that were done before it began', async () => {
  const { uids, former, looks, nextLook } = allUsed()
  for (const uid of UIDS) former.forget(uid)
  const first = await nextLook(1)
  assert.deepEqual(first.users, [7000])
  for (let n = 0; n < 20; n++) await turn()
  assert.equal(looks.length, 1)
  assert.equal(uids.take(), undefined, 'all are in use until nothing of them is left')
  first.end()
  const second = await nextLook(2)
  assert.deepEqual(second.users, [7001, 7002])
  assert.deepEqual([uids.take(), uids.take()], [7000, undefined])
  second.end()
  await former.close()
  assert.deepEqual([uids.take(), uids.take(), looks.length], [7001, 7002, 2])
})

test('a user of whom something stays keeps its number, and is tried again with the next', async () => {
  const { uids, former, nextLook } = allUsed()
  former.forget(7000)
  ;(await nextLook(1)).end([7000])
  await former.close()
  assert.equal(uids.take(), undefined)
  former.forget(7001)
  const second = await nextLook(2)
  assert.deepEqual(second.users, [7000, 7001])
  second.end([7001])
  await former.close()
  assert.deepEqual([uids.take(), uids.take()], [7000, undefined])
})

test('what stays of users is told once', async () => {
  const { former, stays, nextLook } = allUsed()
  former.forget(7000, 7001)
  ;(await nextLook(1)).end([7000, 7001])
  await former.close()
  former.forget(7002)
  ;(await nextLook(2)).end([7000])
  await former.close()
  assert.deepEqual(stays, [[7000, 7001]])
})

test('where nobody is free those of whom something stayed are looked after once more', async () => {
  const { uids, former, nextLook } = allUsed()
  former.forget(7000)
  ;(await nextLook(1)).end([7000])
  await former.close()
  const start = former.userFree().then(() => uids.take())
  const again = await nextLook(2)
  assert.deepEqual(again.users, [7000])
  again.end()
  assert.equal(await start, 7000)
})

test('a start waits for a user that is about to be free, and for none that lives', async () => {
  const { uids, former, nextLook } = allUsed()
  await former.userFree()
  former.forget(7000)
  former.forget(7001)
  const given: (number | undefined)[] = []
  const starts = [0, 1, 2].map(async () => {
    await former.userFree()
    given.push(uids.take())
  })
  const first = await nextLook(1)
  assert.deepEqual(given, [])
  first.end()
  ;(await nextLook(2)).end()
  await Promise.all(starts)
  assert.deepEqual(given, [7000, 7001, undefined])
})

test(
  'a start that goes on while former users are looked after waits for one of them',
  { skip: NEEDS_ROOT },
  async (t) => {
    const home = mkdtempSync(path.join(os.tmpdir(), 'windlass-users-'))
    t.after(() => rmSync(home, { recursive: true, force: true }))
    for (const name of ['runtime', 'workspaces']) mkdirSync(path.join(home, name))
    const held = holdLooks(t)
    const options = { home, pool: () => undefined, execPath: process.execPath, runtime: path.join(home, 'runtime') }
    const host = { ...PLAIN, cgroup: 'off', uids: ofUsers().uids }
    // Takes the 5 s for which a start waits.
    const isolation = await createIsolation({ ...options, host, log: () => {} })
    const inForce = await isolation.ready()
    assert.ok(!('refusal' in inForce), JSON.stringify(inForce))
    const wanted = { inForce, name: 'one', command: { file: '/bin/true', args: [] }, bundleDir: undefined }
    const started = isolation.userFree().then(() => isolation.enclose({ ...wanted, workspace: () => undefined }))
    for (let n = 0; n < 50; n++) await turn()
    held.release()
    await (await started).end(undefined)
    await isolation.close()
  },
)

/** Holds looks for traces where they begin, until the test lets go of them. Answers how many there were. */
function holdLooks(t: TestContext) {
  const { promise, resolve: release } = Promise.withResolvers<void>()
  const opendir = fs.opendir
  let looks = 0
  t.mock.method(fs, 'opendir', async (...args: Parameters<typeof opendir>) => {
    if (args[0] === '/tmp') looks += 1
    await promise
    return opendir(...args)
  })
  return { release, looks: () => looks }
}

test('a run that waits for a free user hears that it is to end', { skip: NEEDS_ROOT }, async (t) => {
  const stage = await aStage(t, { isolation: ofUsers({ cgroup: 'off' }) })
  const { promise: asked, resolve } = Promise.withResolvers<void>()
  t.mock.method(FormerUsers.prototype, 'userFree', () => {
    resolve()
    return new Promise(() => {})
  })
  const ends: ((program: RunningProgram) => void)[] = [
    (program) => program.kill('fenced'),
    (program) => program.cancel({ why: 'cancelled', reason: '', graceMs: 60_000 }),
  ]
  for (const end of ends) {
    const program = stage.processes.run(await stage.start('tells-in-order.mjs'), () => {})
    await asked
    end(program)
    assert.notEqual((await program.done).how, 'returned')
  }
})

test('a program that is taken back may read its bundle before another run begins', { skip: NEEDS_ROOT }, async (t) => {
  const home = mkdtempSync(path.join(os.tmpdir(), 'windlass-users-'))
  t.after(() => rmSync(home, { recursive: true, force: true }))
  for (const name of ['runtime', 'workspaces', 'bundles']) mkdirSync(path.join(home, name))
  const options = { home, pool: () => undefined, execPath: process.execPath, runtime: path.join(home, 'runtime') }
  const { uids } = ofUsers()
  const isolation = await createIsolation({ ...options, host: { ...PLAIN, cgroup: 'off', uids }, log: () => {} })
  const { mode, gid } = statSync(path.join(home, 'bundles'))
  assert.deepEqual([mode & 0o777, gid], [0o710, uids.first])
  await isolation.close()
})

test('the end of a process does not wait for a look at places that all share', { skip: NEEDS_ROOT }, async (t) => {
  const home = mkdtempSync(path.join(os.tmpdir(), 'windlass-users-'))
  t.after(() => rmSync(home, { recursive: true, force: true }))
  for (const name of ['runtime', 'workspaces']) mkdirSync(path.join(home, name))
  const options = { home, pool: () => undefined, execPath: process.execPath, runtime: path.join(home, 'runtime') }
  const host = { ...PLAIN, cgroup: 'off', uids: ofUsers().uids }
  const isolation = await createIsolation({ ...options, host, log: () => {} })
  const inForce = await isolation.ready()
  assert.ok(!('refusal' in inForce), JSON.stringify(inForce))
  const wanted = { inForce, name: 'one', command: { file: '/bin/true', args: [] }, bundleDir: undefined }
  const enclosures = [1, 2, 3, 4].map(() => isolation.enclose({ ...wanted, workspace: () => undefined }))
  const held = holdLooks(t)
  let isReleased = false
  const ends = Promise.all(enclosures.map((each) => each.end(undefined))).then(() => isReleased)
  for (let n = 0; n < 50; n++) await turn()
  isReleased = true
  held.release()
  assert.equal(await ends, false, 'they were told before the look was done')
  await isolation.close()
  assert.ok(held.looks() <= 2, `${held.looks()} looks for four processes`)
})
