import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  rmSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { AgentRefusal } from '../../exit-codes.ts'
import { makeStateFolder } from '../../identity.ts'
import { createIsolation } from '../../isolation/isolation.ts'
import { PLAIN } from '../../isolation/plan.ts'
import type { UidRange } from '../../isolation/plan.ts'
import { lockUids, LOCKS, whyNoLocks } from '../../isolation/uid-lock.ts'
import { asUser, pidsOfUids } from '../../isolation/uids.ts'
import { aStage } from '../run/programs.ts'
import { NEEDS_BUBBLEWRAP, NEEDS_ROOT, ofUsers } from './requirements.ts'

function aFolder(t: TestContext): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'windlass-users-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** What an agent would make of these users, and a process that asks for nothing. */
async function anIsolation(t: TestContext, uids: UidRange, adopted?: number[]) {
  const home = aFolder(t)
  for (const name of ['runtime', 'workspaces']) mkdirSync(path.join(home, name))
  const options = { home, pool: () => undefined, execPath: process.execPath, runtime: path.join(home, 'runtime') }
  const host = { ...PLAIN, cgroup: 'off', uids }
  const isolation = await createIsolation({ ...options, host, adopted, log: () => {} })
  t.after(() => isolation.close())
  const inForce = await isolation.ready()
  assert.ok(!('refusal' in inForce), JSON.stringify(inForce))
  const wanted = { inForce, name: 'one', command: { file: '/bin/true', args: [] }, bundleDir: undefined }
  return { isolation, wanted }
}

/** A process of one of these users, such as a program that waits to be taken back. */
async function aLiving(t: TestContext, uid: number): Promise<void> {
  const child = spawn('setpriv', [...asUser(uid), 'sleep', '300'], { stdio: 'ignore' })
  t.after(() => child.kill('SIGKILL'))
  await untilPolled('it has become that user', () => pidsOfUids({ first: uid, last: uid }).includes(child.pid ?? 0))
}

test('a process for which there is no room costs no user', { skip: NEEDS_ROOT }, async (t) => {
  const { first } = ofUsers().uids
  const { isolation, wanted } = await anIsolation(t, { first, last: first })
  const full = () => {
    throw new Error('no space left on device')
  }
  for (let times = 0; times < 2; times++)
    assert.throws(() => isolation.enclose({ ...wanted, workspace: full }), /no space left/)
  assert.equal(isolation.enclose({ ...wanted, workspace: () => undefined }).uid, first)
})

test('a user of which something lives on from an earlier agent is given to nobody', { skip: NEEDS_ROOT }, async (t) => {
  const { first } = ofUsers().uids
  await aLiving(t, first)
  const { isolation, wanted } = await anIsolation(t, { first, last: first + 1 })
  const given = isolation.enclose({ ...wanted, workspace: () => undefined })
  assert.equal(given.uid, first + 1)
  assert.throws(() => isolation.enclose({ ...wanted, workspace: () => undefined }), /in use/)
})

test('nor is that of a program that is taken back, which no look may see', { skip: NEEDS_ROOT }, async (t) => {
  const { first } = ofUsers().uids
  const { isolation, wanted } = await anIsolation(t, { first, last: first + 2 }, [first + 1])
  assert.equal(isolation.enclose({ ...wanted, workspace: () => undefined }).uid, first + 2)
  assert.throws(() => isolation.enclose({ ...wanted, workspace: () => undefined }), /in use/)
})

for (const level of ['process', 'bubblewrap'] as const) {
  const skip = NEEDS_ROOT || (level === 'bubblewrap' && NEEDS_BUBBLEWRAP)
  test(`only runs of its agent read a bundle whose name is known, in ${level}`, { skip }, async (t) => {
    const isolation = ofUsers({ level })
    const stage = await aStage(t, { isolation })
    const { ending } = await stage.play('tells-in-order.mjs')
    assert.equal(ending.how, 'returned', JSON.stringify(ending))
    const file = path.join(stage.home, 'bundles', 'tells-in-order.mjs', 'main.mjs')
    const readAs = (...user: Parameters<typeof asUser>) =>
      spawnSync('setpriv', [...asUser(...user), 'cat', file]).status
    const { first, last } = isolation.uids
    assert.equal(readAs(last, first), 0)
    assert.notEqual(readAs(last + 1), 0)
    assert.notEqual(readAs(last + 1, last + 1), 0)
  })
}

test('a range that has a user of this machine in it is not taken', { skip: NEEDS_ROOT }, async () => {
  // `nobody`, which every system has.
  await assert.rejects(lockUids({ first: 65_534, last: 65_534 }), /65534 belongs to nobody.*WINDLASS_AGENT_RUN_UIDS/)
})

test('a user leaves nothing to the next run that has its number', { skip: NEEDS_ROOT }, async (t) => {
  const { uids, ...host } = ofUsers()
  const stage = await aStage(t, { isolation: { ...host, uids: { first: uids.first, last: uids.first } } })
  const inputText = JSON.stringify({ name: `${path.basename(stage.home)}-left` })
  for (const what of ['the first', 'the next']) {
    const { ending } = await stage.play('leaves-traces.mjs', { inputText })
    assert.ok(ending.how === 'returned', JSON.stringify(ending))
    assert.deepEqual(JSON.parse(ending.outputText), { found: [], uid: uids.first, isThere: true }, what)
  }
})

test('no run has a folder that another has had, with users and in bubblewrap', async (t) => {
  const levels = [
    { isolation: ofUsers(), lacks: NEEDS_ROOT },
    { isolation: { ...PLAIN, level: 'bubblewrap' } as const, lacks: NEEDS_BUBBLEWRAP },
  ]
  for (const { isolation } of levels.filter(({ lacks }) => !lacks)) {
    const stage = await aStage(t, { isolation })
    const folders = new Set<string>()
    for (let n = 0; n < 3; n++) {
      const { ending } = await stage.play('shows-surroundings.mjs')
      assert.ok(ending.how === 'returned', JSON.stringify(ending))
      folders.add((JSON.parse(ending.outputText) as { cwd: string }).cwd)
    }
    assert.equal(folders.size, 3, [...folders].join(' '))
  }
})

test('what a killed agent has left of its users is gone when the next one begins', { skip: NEEDS_ROOT }, async (t) => {
  const isolation = ofUsers({ cgroup: 'off' })
  const { first, last } = isolation.uids
  // A name that is no text, and a folder.
  const odd = Buffer.from(`/var/tmp/windlass-left-${first}-\xff`, 'latin1')
  const folder = `/var/tmp/windlass-left-${first}-folder`
  writeFileSync(odd, 'secret')
  mkdirSync(path.join(folder, 'inner'), { recursive: true })
  for (const file of [odd, folder]) chownSync(file, first, first)
  const [gone, living, foreign] = [first, first + 1, last + 1].map((uid) => {
    const file = path.join('/var/tmp', `windlass-left-${uid}`)
    writeFileSync(file, 'secret')
    chownSync(file, uid, uid)
    t.after(() => rmSync(file, { force: true }))
    return file
  })
  await aLiving(t, first + 1)
  await aStage(t, { isolation })
  assert.deepEqual(
    [gone, odd, folder, living, foreign].map((file) => existsSync(file!)),
    [false, false, false, true, true],
  )
})

/** A folder of locks for these users, which are not this test's to begin with. */
function aLockFolder(t: TestContext, { first, last }: UidRange, lock: string): void {
  const folder = path.join(LOCKS, `${first}-${last}`)
  mkdirSync(folder, { recursive: true })
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  writeFileSync(path.join(folder, 'agent.lock'), lock)
}

test('a lock that is none keeps nobody from its users', { skip: NEEDS_ROOT }, async (t) => {
  const { uids } = ofUsers()
  for (const [index, lock] of ['garbage', 'null', '7', '{}', '{"pid":"1","started":""}'].entries())
    aLockFolder(t, { first: uids.first - index, last: uids.last }, lock)
  const lock = await lockUids(uids)
  await lock.release()
})

test('only the agent may write where locks lie, whoever made the folder', { skip: NEEDS_ROOT }, (t) => {
  const folder = path.join(aFolder(t), 'uids')
  mkdirSync(folder)
  // As Kubernetes makes it.
  chmodSync(folder, 0o777)
  assert.equal(whyNoLocks(folder), undefined)
  assert.equal(statSync(folder).mode & 0o7777, 0o700)
  chownSync(folder, 65_534, 65_534)
  assert.match(String(whyNoLocks(folder)), /belongs to somebody else/)
  const link = path.join(path.dirname(folder), 'link')
  symlinkSync('/etc', link)
  assert.match(String(whyNoLocks(link)), /is a link/)
})

test('agents that come and go with the same users do not stumble over each other', { skip: NEEDS_ROOT }, async () => {
  const { uids } = ofUsers()
  const comeAndGo = async () => {
    for (let times = 0; times < 100; times++) {
      const lock = await lockUids(uids).catch((error: unknown) => {
        assert.ok(error instanceof AgentRefusal, String(error))
      })
      await lock?.release()
    }
  }
  await Promise.all([comeAndGo(), comeAndGo(), comeAndGo()])
})

test('a state folder stays open to users of runs that live on, and is closed where there are none', async (t) => {
  const home = path.join(aFolder(t), 'home')
  const mode = () => statSync(home).mode & 0o777
  await makeStateFolder(home)
  assert.equal(mode(), 0o700)
  for (const [before, after] of [
    [0o711, 0o711],
    [0o755, 0o711],
    [0o700, 0o700],
  ] as const) {
    chmodSync(home, before)
    await makeStateFolder(home)
    assert.equal(mode(), after)
  }
  chmodSync(home, 0o711)
  const options = { home, pool: () => undefined, execPath: process.execPath, runtime: path.join(home, 'runtime') }
  const isolation = await createIsolation({ ...options, host: { ...PLAIN, cgroup: 'off' }, log: () => {} })
  await isolation.close()
  assert.equal(mode(), 0o700)
})
