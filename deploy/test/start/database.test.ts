import assert from 'node:assert/strict'
import { mkdtemp, readFile, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test } from 'node:test'
import { startDatabase } from '../../start/database.ts'
import { makeHome } from '../../start/local-key.ts'
import { readSettings } from '../../start/settings.ts'
import type { Teller } from '../../start/tell.ts'
import { processesMarked } from '../../tools/leftovers.ts'

test('a server that is just being started again is stopped with the rest', async (t) => {
  const home = await mkdtemp(join(tmpdir(), 'windlass-restart-'))
  t.after(() => rm(home, { recursive: true, force: true }))
  await makeHome(home)
  const ended = Promise.withResolvers<void>()
  const tell: Teller = { json: true, say: () => ended.resolve(), fail: assert.fail, answer: () => assert.fail() }
  const database = await startDatabase(readSettings(['--json'], { WINDLASS_HOME: home }), tell)
  t.after(() => database.stop())
  const [pid] = (await readFile(join(home, 'postgres', 'data', 'postmaster.pid'), 'utf8')).split('\n')
  process.kill(Number(pid), 'SIGKILL')
  await ended.promise

  await database.stop()
  assert.deepEqual(processesMarked(home), [])
})
