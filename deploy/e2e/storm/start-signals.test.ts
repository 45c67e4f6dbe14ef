// What a second signal to `npm start` does.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import { makeHome, nothingIsLeft, startInstance } from '../_kit/instance.ts'
import { deploy, programFiles, trigger } from '../_kit/runs.ts'
import { until } from '../_kit/until.ts'

const QUIET = { WINDLASS_START_EXAMPLE: 'false' }

test('a second signal ends programs, parts and PostgreSQL at once, and the next start goes on', async (t) => {
  const temp = makeHome()
  t.after(() => temp.remove())
  const first = await startInstance({ home: temp.home, env: { ...QUIET, WINDLASS_AGENT_STOP_MS: '600000' } })
  await deploy(first.client, programFiles('healthy'))
  const run = await trigger(first.client, 'healthy', { takesMs: 600_000 })
  const status = async () => (await first.client.runs.get({ run })).run.status
  await until('the program to run', async () => (await status()) === 'running')
  first.process.child.kill('SIGINT')
  await first.process.says('SIGINT: stopping')
  first.process.child.kill('SIGTERM')
  assert.equal(await first.process.ended(), 130)
  await nothingIsLeft(temp.home)
  const next = await startInstance({ home: temp.home, env: QUIET })
  await next.client.runs.cancel({ run })
  await next.stop()
})
