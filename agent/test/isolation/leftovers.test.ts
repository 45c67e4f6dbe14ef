import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import fs, { existsSync, mkdtempSync, rmSync } from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import os from 'node:os'
import path from 'node:path'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { endCgroup, makeCgroup } from '../../isolation/cgroup.ts'
import { mountIn, openCgroup } from '../../isolation/cgroup-folder.ts'
import { takeUsers } from '../../isolation/own-users.ts'
import { NO_LIMITS, PLAIN } from '../../isolation/plan.ts'
import { lockUids } from '../../isolation/uid-lock.ts'
import { asUser, pidsOfUids } from '../../isolation/uids.ts'
import { markOf } from '../../os/process-id.ts'
import { endLeftovers } from '../../run/hosts/leftovers.ts'
import type { ProgramRecord } from '../../takeover/records.ts'
import { aStage, isAlive } from '../run/programs.ts'
import { NEEDS_ROOT, ofUsers } from './requirements.ts'

const silent = createLog({}, 'error', { write: () => {} })

function aHome(t: TestContext): string {
  const home = mkdtempSync(path.join(os.tmpdir(), 'windlass-left-'))
  t.after(() => rmSync(home, { recursive: true, force: true }))
  return home
}

/** A process that has nothing by which it could be told: no marker, no folder of ours, a session of its own. */
async function aStray(t: TestContext, prefix: string[] = []): Promise<number> {
  const command = [...prefix, 'sleep', '300']
  const child = spawn(command[0] ?? '', command.slice(1), {
    cwd: '/',
    env: { PATH: '/usr/bin:/bin' },
    detached: true,
    stdio: 'ignore',
  })
  t.after(() => child.kill('SIGKILL'))
  await once(child, 'spawn')
  assert.ok(child.pid)
  return child.pid
}

test('what an earlier agent has left in its cgroups is dead before anything is said of its runs', async (t) => {
  const home = aHome(t)
  const parent = openCgroup(home, 'auto')
  if ('reason' in parent) return t.skip(parent.reason)
  const group = makeCgroup(path.join(parent.folder, 'left'), { ...parent, limits: NO_LIMITS, runs: null })
  t.after(() => endCgroup(parent.folder, null))
  const pid = await aStray(t, ['sh', '-c', `echo 0 > ${group.procsFile}; exec "$@"`, 'sh'])
  while (!group.pids().includes(pid)) assert.ok(await isAlive(pid))
  await endLeftovers(home, silent)
  assert.equal(await isAlive(pid), false)
  assert.equal(existsSync(parent.folder), false)
})

test('a child without a trace of its run is dead when the run is, where there are cgroups', async (t) => {
  const stage = await aStage(t)
  const found = await stage.processes.isolation()
  if ('refusal' in found || !found.cgroup) return t.skip('it needs cgroups that an agent may make')
  const { ending } = await stage.play('starts-escapee.mjs', { inputText: '{"inSession":true,"bare":true,"away":true}' })
  assert.ok(ending.how === 'returned', JSON.stringify(ending))
  assert.equal(await isAlive(Number(ending.outputText)), false)
  assert.equal(stage.processes.stats().survivors, 0)
})

test('what is left of the users of runs is dead too', { skip: NEEDS_ROOT }, async (t) => {
  const isolation = ofUsers({ cgroup: 'off' })
  const pid = await aStray(t, ['setpriv', ...asUser(isolation.uids.first + 7)])
  await untilPolled('it has become that user', () => pidsOfUids(isolation.uids).includes(pid))
  await endLeftovers(aHome(t), silent, isolation)
  assert.equal(await isAlive(pid), false)
})

test(
  'what no look sees of the users of runs is dead too, but for what is taken back',
  { skip: NEEDS_ROOT },
  async (t) => {
    const isolation = ofUsers({ cgroup: 'off' })
    const { first } = isolation.uids
    const uids = [1, 2, 99].map((offset) => first + offset)
    const pids = await Promise.all(uids.map((uid) => aStray(t, ['setpriv', ...asUser(uid)])))
    await untilPolled('they have become those users', () => pidsOfUids(isolation.uids).length === pids.length)
    const readdir = fs.readdirSync as (...args: unknown[]) => unknown
    // As processes that start the next one and end at once.
    t.mock.method(fs, 'readdirSync', (...args: unknown[]) => (args[0] === '/proc' ? [] : readdir(...args)))
    syncBuiltinESMExports()
    t.after(() => {
      t.mock.restoreAll()
      syncBuiltinESMExports()
    })
    const taken = { uid: first + 2, process: markOf(pids[1]!) } as ProgramRecord
    await endLeftovers(aHome(t), silent, isolation, [taken])
    assert.deepEqual(await Promise.all(pids.map(isAlive)), [false, true, false])
  },
)

test('two agents cannot have the same users', { skip: NEEDS_ROOT }, async (t) => {
  const { uids } = ofUsers()
  const lock = await lockUids(uids)
  t.after(() => lock.release())
  await assert.rejects(takeUsers({ ...PLAIN, uids, cgroup: 'off' }, { home: aHome(t) }), /is an agent that works in/)
})

test('the mount of cgroup v2 is found among others, however it is called', () => {
  const mountinfo = [
    '31 24 0:27 / /sys/fs/cgroup/memory rw - cgroup cgroup rw,memory',
    '32 24 0:28 /part\\040one /sys/fs/my\\040groups rw,nosuid shared:4 - cgroup2 cgroup2 rw',
  ].join('\n')
  assert.deepEqual(mountIn(mountinfo), { root: '/part one', point: '/sys/fs/my groups' })
  assert.equal(mountIn('31 24 0:27 / /sys rw - sysfs sysfs rw'), undefined)
})
