// A program that holds the lock of a pipe would keep its agent waiting for as long as it likes.
import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, chownSync, closeSync, constants, mkdtempSync, openSync, readFileSync, rmSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { untilGone } from '@windlass/shared/test/_kit/processes.ts'
import { untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { asUser } from '../../../isolation/uids.ts'
import { makePipes } from '../../../os/named-pipes.ts'
import { markOf } from '../../../os/process-id.ts'
import { watchPipes } from '../../../run/hosts/pipe-watch.ts'
import { guardFileSystems, NEEDS_FUSE, withFileSystem } from '../../isolation/file-systems.ts'
import { NEEDS_ROOT, ofUsers } from '../../isolation/requirements.ts'
import { aStage } from '../programs.ts'
import { HOLDS_PIPE, HOLDS_PIPE_OVER_FUSE, LAST_S, NEEDS_PERL_AND_SPLICE as skip, SPLICE } from './holding.ts'

const ATTACKS = {
  'holds the pipe of its stdout': { into: 1 },
  'holds the pipe of its line to the agent': { into: 3 },
  'lets go of the pipe for moments': { into: 1, pause: 0.2 },
}

for (const [name, input] of Object.entries(ATTACKS))
  test(`a program that ${name} is ended, and it is told why`, { skip }, async (t) => {
    const stage = await aStage(t)
    const inputText = JSON.stringify({ script: HOLDS_PIPE, ...input })
    const { ending } = await stage.play('holds-pipe.mjs', { inputText, timeoutMs: 2 * LAST_S * 1000 })
    assert.ok(ending.how === 'threw', ending.how)
    assert.equal(ending.error.code, 'PROGRAM_LINE_BROKEN')
    assert.match(ending.error.message, /kept its agent waiting for \d+\.\d s: it held the lock of a pipe/)
  })

const { O_NONBLOCK, O_RDONLY, O_RDWR } = constants
/** No process has it. */
const NO_GROUP = 2 ** 22

/** A named pipe, and our end of it. */
async function aPipe(t: TestContext, uid?: number) {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'windlass-held-'))
  t.after(() => rmSync(folder, { recursive: true }))
  chmodSync(folder, 0o755)
  const file = path.join(folder, 'pipe')
  await makePipes([file])
  if (uid !== undefined) chownSync(file, uid, uid)
  return { folder, file, ourEnd: openSync(file, O_RDWR | O_NONBLOCK) }
}

/** A pipe whose lock is held by a process, and whoever watches; `ourEnd` is open. */
async function aHeldPipe(t: TestContext, uid?: number) {
  const { file, ourEnd } = await aPipe(t, uid)
  const command = ['perl', '-e', HOLDS_PIPE, '1', '0', file]
  const [name, ...args] = uid === undefined ? command : ['setpriv', ...asUser(uid), ...command]
  const holder = spawn(name!, args, { stdio: ['ignore', 'ignore', 'inherit'] })
  const ended = once(holder, 'exit')
  const logged: string[] = []
  const watch = watchPipes({ log: (event) => void logged.push(event), runs: null })
  t.after(async () => {
    holder.kill('SIGKILL')
    await ended
    await watch.close()
  })
  await untilPolled('it waits for the socket', () => {
    const [call, stat] = ['syscall', 'stat'].map((name) => readFileSync(`/proc/${holder.pid}/${name}`, 'utf8'))
    return call!.startsWith(`${SPLICE} `) && stat!.includes(') S ')
  })
  return { file, ourEnd, holder, ended, logged, watch }
}

const killed = [null, 'SIGKILL']

test('one that an agent is about to open is free again when its holder is ended', { skip }, async (t) => {
  const { file, ourEnd, holder, ended, watch } = await aHeldPipe(t)
  const who = { group: NO_GROUP, uid: undefined, folder: undefined }
  const fd = watch.during(who, [file], () => openSync(file, O_RDONLY | O_NONBLOCK))
  assert.deepEqual(await ended, killed, `${holder.pid}`)
  for (const each of [fd, ourEnd]) closeSync(each)
})

test('with its holder ends the first process of the pid namespace that has left the group', { skip }, async (t) => {
  const { ourEnd, ended, watch } = await aHeldPipe(t)
  const init = spawn('sleep', ['300'], { stdio: 'ignore' })
  const gone = once(init, 'exit')
  t.after(() => init.kill('SIGKILL'))
  watch.add({ group: NO_GROUP, uid: undefined, folder: undefined }, [ourEnd], () => {})
  watch.addInit(NO_GROUP, markOf(init.pid!)!)
  closeSync(ourEnd)
  assert.deepEqual(await ended, killed)
  await untilGone('the first process', init.pid!)
  assert.deepEqual(await gone, killed)
})

test('one that was handed to another run is free again when that is ended', { skip: skip || NEEDS_ROOT }, async (t) => {
  const { first, last } = ofUsers().uids
  const { ourEnd, ended, watch } = await aHeldPipe(t, first)
  const heard = Promise.withResolvers<string>()
  watch.add({ group: NO_GROUP, uid: last, folder: undefined }, [ourEnd], () => {})
  watch.add({ group: NO_GROUP, uid: first, folder: undefined }, [], ({ name }) => heard.resolve(name))
  closeSync(ourEnd)
  assert.deepEqual(await ended, killed)
  assert.equal(await heard.promise, 'HeldPipe')
})

for (const whose of ['of the same user', 'of a user of its own'] as const)
  test(
    `one that an agent closes is free again when its holder is ended, ${whose}`,
    { skip: skip || (whose === 'of a user of its own' && NEEDS_ROOT) },
    async (t) => {
      const uid = whose === 'of the same user' ? undefined : ofUsers().uids.first
      const { ourEnd, ended, watch, logged } = await aHeldPipe(t, uid)
      const heard = Promise.withResolvers<string>()
      watch.add({ group: NO_GROUP, uid, folder: undefined }, [ourEnd], ({ name }) => heard.resolve(name))
      closeSync(ourEnd)
      assert.deepEqual(await ended, killed)
      assert.equal(await heard.promise, 'HeldPipe')
      assert.deepEqual(logged, ['process.held-pipe'])
    },
  )

test(
  'one whose holder waits for a file system of its own is free again as well',
  { skip: skip || NEEDS_FUSE },
  async (t) => {
    const uid = ofUsers().uids.first
    const { folder, file, ourEnd } = await aPipe(t, uid)
    const mounted = mkdtempSync(path.join(folder, 'fuse-'))
    chownSync(mounted, uid, uid)
    const [name, ...args] = withFileSystem(uid, mounted, ['perl', '-e', HOLDS_PIPE_OVER_FUSE, mounted, file])
    const holder = spawn(name!, args, { stdio: ['ignore', 'ignore', 'pipe'] })
    const ended = once(holder, 'exit')
    const wasGuarded = guardFileSystems(t, uid, path.join(folder, 'guarded'))
    const watch = watchPipes({ log: () => {}, runs: null })
    t.after(() => watch.close())
    watch.add({ group: NO_GROUP, uid, folder: undefined }, [ourEnd], () => {})
    await once(holder.stderr, 'data')
    closeSync(ourEnd)
    assert.deepEqual(await ended, killed)
    assert.equal(wasGuarded(), false)
  },
)
