import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { chownSync, existsSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { createIsolation } from '../../isolation/isolation.ts'
import { PLAIN } from '../../isolation/plan.ts'
import type { UidRange } from '../../isolation/plan.ts'
import { lockUids, ownerAmong } from '../../isolation/uid-lock.ts'
import { asUser, pidsOfUids } from '../../isolation/uids.ts'
import { aStage, until } from '../run/programs.ts'
import { NEEDS_ROOT, ofUsers } from './places.ts'

function aFolder(t: TestContext): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'windlass-users-'))
  t.after(() => rmSync(folder, { recursive: true, force: true }))
  return folder
}

/** What an agent would make of these users, and a process that asks for nothing. */
async function anIsolation(t: TestContext, uids: UidRange) {
  const home = aFolder(t)
  for (const name of ['runtime', 'workspaces']) mkdirSync(path.join(home, name))
  const options = { home, pool: () => undefined, execPath: process.execPath, runtime: path.join(home, 'runtime') }
  const isolation = await createIsolation({ ...options, host: { ...PLAIN, cgroup: 'off', uids }, log: () => {} })
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
  await until('it has become that user', () => pidsOfUids({ first: uid, last: uid }).includes(child.pid ?? 0))
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

test('users that somebody else has are refused, with their owner', (t) => {
  const folder = aFolder(t)
  const registries = { passwd: path.join(folder, 'passwd'), subuid: path.join(folder, 'subuid') }
  writeFileSync(registries.passwd, '# people\nroot:x:0:0::/root:/bin/sh\nann:x:700010:700010::/home/ann:/bin/sh\n')
  writeFileSync(registries.subuid, 'bob:800000:65536\n')
  const owner = (first: number, last: number) => ownerAmong({ first, last }, registries)
  assert.match(String(owner(700_000, 700_999)), /User id 700010 belongs to ann/)
  assert.match(String(owner(865_000, 866_000)), /800000-865535 belong to containers of bob/)
  assert.match(String(owner(790_000, 900_000)), /bob/)
  for (const [first, last] of [
    [700_011, 700_999],
    [799_000, 799_999],
    [865_536, 866_000],
  ] as const)
    assert.equal(owner(first, last), undefined)
})

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

test('what a killed agent has left of its users is gone when the next one begins', { skip: NEEDS_ROOT }, async (t) => {
  const isolation = ofUsers({ cgroup: 'off' })
  const { first, last } = isolation.uids
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
    [gone, living, foreign].map((file) => existsSync(file!)),
    [false, true, true],
  )
})
