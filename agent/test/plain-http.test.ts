import assert from 'node:assert/strict'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { test } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import { AgentRefusal, EXIT } from '../exit-codes.ts'
import { isReadable } from '@windlass/shared/loopback.ts'
import { assertPrivate } from '../plain-http.ts'
import { registerAgent } from '../register.ts'
import { configOf } from '../run-agent.ts'
import { startAgent } from '../start.ts'
import { aFolder } from './_kit/an-agent.ts'

const log = createLog({}, 'error')
const refusal = (error: unknown) =>
  error instanceof AgentRefusal &&
  error.exitCode === EXIT.config &&
  /WINDLASS_URL: http:\/\/192\.0\.2\.1:8787 is plain http[^]*https[^]*--allow-http[^]*WINDLASS_AGENT_ALLOW_HTTP/.test(
    error.message,
  )

test('neither registration nor start send a token over plain http to another machine', async (t) => {
  const { folder, remove } = await aFolder()
  t.after(remove)
  const home = path.join(folder, 'agent')
  const config = configOf({ url: 'http://192.0.2.1:8787', token: 'wlr_x', home, config: 'none' }, {})
  await assert.rejects(registerAgent(config, log), refusal)
  await assert.rejects(startAgent(config, { log }), refusal)
  assert.ok(!existsSync(home), 'nothing was begun')
})

test('plain http is readable unless it stays on this machine, whatever a name looks like', () => {
  for (const host of ['localhost:8787', '127.0.0.1', '127.1.2.3:80', '[::1]:8787', 'LOCALHOST'])
    assert.equal(isReadable(`http://${host}`), false, host)
  for (const host of ['127.0.0.1.example.com', 'localhost.example.com', '0.0.0.0', '10.0.0.1', 'coordinator:8787'])
    assert.equal(isReadable(`http://${host}`), true, host)
  assert.equal(isReadable('https://windlass.example.com'), false)
})

test('plain http to another machine is taken when it is asked for, by flag or setting', () => {
  const url = 'http://192.0.2.1:8787'
  for (const config of [
    configOf({ url, config: 'none', allowHttp: true }, {}),
    configOf({ url, config: 'none' }, { WINDLASS_AGENT_ALLOW_HTTP: 'true' }),
  ])
    assert.doesNotThrow(() => assertPrivate(config))
})
