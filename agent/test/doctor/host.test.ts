import assert from 'node:assert/strict'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import path from 'node:path'
import { test } from 'node:test'
import { readConfig } from '../../config.ts'
import { PLAIN } from '../../isolation/plan.ts'
import { hostQuestions } from '../../doctor/host.ts'

test('before the first start the room is that of the disk on which the folder will lie', async (t) => {
  const folder = await mkdtemp(path.join(tmpdir(), 'windlass-doctor-'))
  t.after(() => rm(folder, { recursive: true }))
  const home = path.join(folder, 'not', 'there', 'yet')
  const config = readConfig({
    WINDLASS_URL: 'http://127.0.0.1:1',
    WINDLASS_AGENT_HOME: home,
    WINDLASS_AGENT_DISK_RESERVE_MB: '0',
  })
  const questions = hostQuestions({ config, settingsFile: undefined, plan: async () => PLAIN })
  for (const name of ['disk', 'inodes']) {
    const question = questions.find(({ check }) => check === name)!
    assert.deepEqual(await question.ask(new AbortController().signal), {
      verdict: 'ok',
      message: 'there is room',
      fix: null,
    })
  }
})
