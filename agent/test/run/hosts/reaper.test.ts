import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, mkdirSync, mkdtempSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { killerOf } from '../../../isolation/end-users.ts'
import { markOf, sinceBootMs } from '../../../os/process-id.ts'
import { uidsOf } from '../../../os/process-table.ts'
import { MARKER } from '../../../os/environment.ts'
import { REAPER_SCRIPT } from '../../../run/hosts/reaper-script.ts'
import { isAlive } from '../programs.ts'
import { guardFileSystems, NEEDS_FUSE, withFileSystem } from '../../isolation/file-systems.ts'
import { NEEDS_ROOT, ofUsers } from '../../isolation/requirements.ts'

async function aMarked(t: TestContext, uid?: number): Promise<number> {
  const env = { PATH: '/usr/bin:/bin', [MARKER]: 'reaper-test.1' }
  const child = spawn('sleep', ['300'], { env, stdio: 'ignore', detached: true, ...(uid !== undefined && { uid }) })
  t.after(() => child.kill('SIGKILL'))
  await once(child, 'spawn')
  return child.pid!
}

test(
  'the reaper looks into no process of another user, which could keep it waiting',
  { skip: NEEDS_ROOT },
  async (t) => {
    const [own, other] = [await aMarked(t), await aMarked(t, 650_007)]
    const reaper = spawn('/bin/sh', ['-c', REAPER_SCRIPT, 'reaper', `${MARKER}=reaper-test`, ''], {
      env: { PATH: '/usr/bin:/bin' },
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    reaper.stdin.end()
    await once(reaper, 'exit')
    assert.deepEqual([await isAlive(own), await isAlive(other)], [false, true])
  },
)

test('one whose agent is killed at once guards what it was given, until the lease of that is over', async (t) => {
  const found = await aMarked(t)
  const until = Math.floor(sinceBootMs() / 1000) + 3
  const charge = [String(found), String(found), String(until), String(until * 100)]
  const reaper = spawn('/bin/sh', ['-c', REAPER_SCRIPT, 'reaper', `${MARKER}=no-test`, '', '', '', ...charge], {
    env: { PATH: '/usr/bin:/bin' },
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  reaper.stdin.end()
  await once(reaper, 'exit')
  assert.ok(sinceBootMs() >= until * 1000, 'it lives until then')
  assert.equal(await isAlive(found), false)
})

test('the first processes of pid namespaces end, and none that has the number of one by now', async (t) => {
  const [begun, told, reused, over] = [await aMarked(t), await aMarked(t), await aMarked(t), await aMarked(t)]
  const charge = [`${begun}:${markOf(begun)!.started} ${reused}:1 ${over}:${markOf(over)!.started}`]
  const none = Array<string>(7).fill('')
  const reaper = spawn('/bin/sh', ['-c', REAPER_SCRIPT, 'reaper', `${MARKER}=no-test`, ...none, ...charge], {
    env: { PATH: '/usr/bin:/bin' },
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  reaper.stdin.end(`init ${told} ${markOf(told)!.started}\nover ${over} ${markOf(over)!.started}\n`)
  await once(reaper, 'exit')
  const alive = [begun, told, reused, over].map(isAlive)
  assert.deepEqual(await Promise.all(alive), [false, false, true, true])
})

for (const [what, isLeft] of [
  ['what no look sees of users of runs ends', true],
  ['nobody looks for it where the agent has ended all itself', false],
] as const)
  test(what, { skip: NEEDS_ROOT }, async (t) => {
    const { first, last } = ofUsers().uids
    // The reaper looks at the first number, of the real user; for the kernel the others count as well.
    const its = ['--ruid=65534', `--euid=${first + 5}`, '--regid=65534', '--clear-groups']
    const unseen = spawn('setpriv', [...its, 'sleep', '300'], { stdio: 'ignore' })
    t.after(() => unseen.kill('SIGKILL'))
    await untilPolled('it is that user', () => uidsOf(unseen.pid!).includes(first + 5))
    const group = isLeft ? String(await aMarked(t)) : ''
    const charge = [String(first), String(last), group, '', '', '', '', ...killerOf([{ first, last }])]
    const reaper = spawn('/bin/sh', ['-c', REAPER_SCRIPT, 'reaper', `${MARKER}=no-test`, '', ...charge], {
      env: { PATH: '/usr/bin:/bin' },
      stdio: ['pipe', 'ignore', 'ignore'],
    })
    reaper.stdin.end()
    await once(reaper, 'exit')
    assert.equal(await isAlive(unseen.pid!), !isLeft)
  })

const ASKS_ITSELF = path.join(import.meta.dirname, '../../programs/asks-itself-over-fuse.mjs')

test('a program that waits for a file system of its own ends with its agent', { skip: NEEDS_FUSE }, async (t) => {
  const { first, last } = ofUsers().uids
  const folder = mkdtempSync(path.join(os.tmpdir(), 'windlass-reaper-'))
  chmodSync(folder, 0o755)
  t.after(() => rmSync(folder, { recursive: true }))
  const mounted = path.join(folder, 'mounted')
  mkdirSync(mounted)
  chownSync(mounted, first, first)
  const [name, ...args] = withFileSystem(first, mounted, [process.execPath, ASKS_ITSELF, mounted])
  const program = spawn(name!, args, { cwd: folder, stdio: ['ignore', 'pipe', 'inherit'] })
  const ended = once(program, 'exit')
  const wasGuarded = guardFileSystems(t, first, path.join(folder, 'guarded'))
  const early = ended.then((end) => Promise.reject(new Error(`it ended before it asked: ${end.join(' ')}`)))
  await Promise.race([once(program.stdout, 'data'), early])
  const range = [String(first), String(last)]
  const reaper = spawn('/bin/sh', ['-c', REAPER_SCRIPT, 'reaper', `${MARKER}=no-test`, '', ...range], {
    env: { PATH: '/usr/bin:/bin' },
    stdio: ['pipe', 'ignore', 'ignore'],
  })
  // It may be gone before the program is seen to be.
  const reaped = once(reaper, 'exit')
  reaper.stdin.end()
  assert.deepEqual(await ended, [null, 'SIGKILL'])
  assert.equal(wasGuarded(), false)
  await reaped
})
