// A program's own process may wait in the kernel for a file system of its own: SIGKILL alone does not end it.
import assert from 'node:assert/strict'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import type { RunningProgram } from '../../../run/program/program.ts'
import { guardFileSystems, NEEDS_FUSE as skip, onFileSystem } from '../../isolation/file-systems.ts'
import { ofUsers } from '../../isolation/requirements.ts'
import { aStage, texts } from '../programs.ts'

const SERVER = path.join(import.meta.dirname, '../../programs/asks-itself-over-fuse.mjs')
const inputText = JSON.stringify({ command: onFileSystem('FOLDER', [process.execPath, SERVER]) })

/** Under way, and waiting for its file system. */
async function aStuck(t: TestContext) {
  // The kill of a cgroup would end its server as well.
  const isolation = ofUsers({ cgroup: 'off' })
  const uid = isolation.uids.first
  const stage = await aStage(t, { isolation: { ...isolation, uids: { first: uid, last: uid } } })
  const { home, processes } = stage
  const wasGuarded = guardFileSystems(t, uid, path.join(home, 'guarded'))
  const asked = Promise.withResolvers<void>()
  const wanted = await stage.start('asks-its-server.mjs', { inputText, timeoutMs: 600_000 })
  const program = processes.run(wanted, (events) => {
    if (texts(events).includes('asked')) asked.resolve()
  })
  await asked.promise
  return { program, processes, wasGuarded }
}

const ENDS = {
  'is cancelled when its grace is over': {
    end: (program: RunningProgram) => program.cancel({ why: 'cancelled', reason: 'enough', graceMs: 100 }),
    ending: { how: 'cancelled', forced: true },
  },
  'is gone when it is fenced': {
    end: (program: RunningProgram) => program.kill('fenced'),
    ending: { how: 'lost', reason: 'fenced' },
  },
}

for (const [name, { end, ending }] of Object.entries(ENDS))
  test(`one ${name}, and its slot is free`, { skip }, async (t) => {
    const { program, processes, wasGuarded } = await aStuck(t)
    end(program)
    assert.deepEqual(await program.done, ending)
    assert.equal(wasGuarded(), false)
    assert.equal(processes.stats().survivors, 0)
  })

test('one that nobody hears any more is ended as well', { skip }, async (t) => {
  const { program, processes, wasGuarded } = await aStuck(t)
  assert.equal(await processes.end(program.host()!), true)
  assert.equal(wasGuarded(), false)
  await program.done
})
