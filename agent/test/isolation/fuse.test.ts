import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chownSync, mkdtempSync } from 'node:fs'
import path from 'node:path'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import { endCgroup, makeCgroup } from '../../isolation/cgroup.ts'
import { openCgroup } from '../../isolation/cgroup-folder.ts'
import { NO_LIMITS, PLAIN } from '../../isolation/plan.ts'
import { endUids, pidsOfUids } from '../../isolation/uids.ts'
import { endLeftovers } from '../../run/hosts/leftovers.ts'
import { aHome, aWaiter, NEEDS_FUSE, withFileSystem } from './file-systems.ts'
import { ofUsers } from './requirements.ts'

const PROGRAM = path.join(import.meta.dirname, '../programs/asks-itself-over-fuse.mjs')
const silent = createLog({}, 'error', { write: () => {} })

const skip = NEEDS_FUSE

/** A process of this user that SIGKILL does not end, in a folder of its own; `enter` is a piece of shell. */
async function aStuck(t: TestContext, uid: number, { home, enter = ':' }: { home: string; enter?: string }) {
  const folder = mkdtempSync(path.join(home, 'fuse-'))
  chownSync(folder, uid, uid)
  const command = withFileSystem(uid, folder, [process.execPath, PROGRAM, folder])
  const child = spawn('sh', ['-c', `${enter}; exec "$@"`, 'sh', ...command], {
    cwd: folder,
    env: { PATH: process.env.PATH },
    stdio: ['ignore', 'pipe', 'inherit'],
  })
  t.after(() => child.kill('SIGKILL'))
  await once(child.stdout, 'data')
}

test('a program that asks a file system of its own, which does not answer, is ended', { skip }, async (t) => {
  const { first: uid } = ofUsers().uids
  await aStuck(t, uid, { home: aHome(t) })
  assert.equal(await endUids({ first: uid, last: uid }, null), true)
})

test('so is one in a cgroup', { skip }, async (t) => {
  const home = aHome(t)
  const parent = openCgroup(home, 'auto')
  if ('reason' in parent) return t.skip(parent.reason)
  t.after(() => endCgroup(parent.folder, null))
  const group = makeCgroup(path.join(parent.folder, 'stuck'), { ...parent, limits: NO_LIMITS, runs: null })
  await aStuck(t, ofUsers().uids.first, { home, enter: `echo 0 > ${group.procsFile}` })
  assert.equal(await group.end(), true)
})

test('so is one that an earlier agent has left', { skip }, async (t) => {
  const [home, { uids }] = [aHome(t), ofUsers()]
  await aStuck(t, uids.first, { home })
  await endLeftovers(home, silent, { ...PLAIN, cgroup: 'off', uids })
  assert.deepEqual(pidsOfUids(uids), [])
})

test('so is one that asks the file system of another run, which lives on', { skip }, async (t) => {
  const { uids } = ofUsers()
  const [owner, waiter] = [uids.first + 1, uids.first + 2]
  await aWaiter(t, { owner, waiter })
  const ended: number[] = []
  const runs = { ...uids, onEnded: (each: number) => void ended.push(each) }
  assert.equal(await endUids({ first: waiter, last: waiter }, runs), true)
  assert.deepEqual(ended, [owner])
  assert.notDeepEqual(pidsOfUids({ first: owner, last: owner }), [])
})

test('a file system of nobody here is not ended for it', { skip }, async (t) => {
  const { uids } = ofUsers()
  const [owner, waiter] = [uids.first + 1, uids.last + 1]
  await aWaiter(t, { owner: waiter, waiter: owner })
  const runs = { ...uids, onEnded: () => assert.fail('it was ended') }
  assert.equal(await endUids({ first: owner, last: owner }, runs), false)
})
