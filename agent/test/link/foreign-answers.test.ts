// A proxy answers in place of the coordinator.
import assert from 'node:assert/strict'
import { STATUS_CODES } from 'node:http'
import http from 'node:http'
import { once } from 'node:events'
import { existsSync, readFileSync } from 'node:fs'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { test } from 'node:test'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { behindForeign, FOREIGN } from '@windlass/shared/test/_kit/foreign.ts'
import { readConfig } from '../../config.ts'
import { obtainIdentity } from '../../identity.ts'
import { createClock } from '../../link/clock.ts'
import { createLink } from '../../link/link.ts'
import { createRest } from '../../link/rest.ts'
import { aFolder, aLog } from '../_kit/an-agent.ts'
import { answer } from '../_kit/http.ts'

const never = new AbortController().signal
/** JSON of something that says how it is. */
const HEALTH = { status: 200, type: 'application/json', body: '{"status":"ok"}' }

test('an agent that registers waits for the coordinator behind whatever answers in its place', async (t) => {
  t.mock.method(Math, 'random', () => 0)
  const all = [...FOREIGN, HEALTH]
  const { url, left } = await behindForeign(t, all, (_, response) =>
    answer(response, 201, { runner: 'rnr_1', org: 'o', pool: 'p', settings: {} }),
  )
  const { folder, remove } = await aFolder()
  t.after(remove)
  const keyFile = path.join(folder, 'first-key.json')
  const env = { WINDLASS_AGENT_CONFIG: 'none', WINDLASS_URL: url, WINDLASS_AGENT_HOME: folder }
  const { log, lines } = aLog()
  const keys = new Set<string>()
  const watching: typeof log = Object.assign((...args: Parameters<typeof log>) => log(...args), log, {
    warn: (...args: Parameters<typeof log.warn>) => {
      keys.add(readFileSync(keyFile, 'utf8'))
      log.warn(...args)
    },
  })
  const identity = await obtainIdentity(readConfig({ ...env, WINDLASS_AGENT_TOKEN: 'wlr_a' }), watching, never)
  assert.equal(identity.runner, 'rnr_1')
  assert.equal(left(), 0)
  assert.equal(lines.filter(({ name }) => name === 'agent.register.waiting').length, all.length)
  assert.equal(keys.size, 1, 'the key is kept for the answer that may have been lost')
  assert.equal(existsSync(keyFile), false)
})

test('what an agent asks for is not taken from somebody else', async (t) => {
  for (const foreign of [...FOREIGN, HEALTH]) {
    const { url } = await behindForeign(t, Array(5).fill(foreign), (_, response) => void response.destroy())
    const rest = createRest(url, () => Promise.resolve('token'), createClock())
    const bad = { code: 'BAD_ANSWER', status: foreign.status }
    await assert.rejects(rest.secrets('run_1', 'token', never), bad)
    await assert.rejects(rest.bundle('0'.repeat(64), 0, never), bad)
    await assert.rejects(rest.renewKey({ kty: 'OKP', crv: 'Ed25519', x: 'x' }, never), bad)
    await assert.rejects(rest.claims(1, 0, never), foreign === HEALTH ? TypeError : bad)
    // The reader of a journal sees whether it is one.
    if (foreign === HEALTH) continue
    await assert.rejects(
      rest.journal('run_1', 1, never, () => assert.fail('it is no journal')),
      bad,
    )
  }
})

test('a proxy that lets no socket through does not know this agent, nor its keys', async (t) => {
  t.mock.method(Math, 'random', () => 0)
  const left = [...FOREIGN]
  const tokens: string[] = []
  const server = http.createServer().on('upgrade', (request, socket) => {
    socket.on('error', () => undefined)
    tokens.push(request.headers.authorization ?? '')
    const { status, type, body } = left.shift() ?? FOREIGN[0]!
    const date = new Date(0).toUTCString()
    const head = `content-type: ${type}\r\ndate: ${date}\r\ncontent-length: ${body.length}\r\nconnection: close`
    socket.end(`HTTP/1.1 ${status} ${STATUS_CODES[status]}\r\n${head}\r\n\r\n${body}`)
  })
  await once(server.listen(0, '127.0.0.1'), 'listening')
  t.after(() => server.close())
  const { log, lines } = aLog()
  const clock = createClock()
  const link = createLink({
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    clock,
    log,
    // Nobody waits for so long.
    refusedMs: 3_600_000,
    mostPauseMs: () => 30_000,
    credential: () => Promise.resolve('present'),
    formerCredentials: () => assert.fail('a former key was looked for'),
  })
  const end = new AbortController()
  t.after(() => end.abort())
  const hello = () => assert.fail('it was let in')
  const ended = link.keep(end.signal, { hello, onFrame: () => undefined, onDown: () => undefined })
  const downs = () => lines.filter(({ name }) => name === 'link.down')
  await until('all of them', () => downs().length >= FOREIGN.length)
  end.abort()
  await ended
  assert.deepEqual([...new Set(tokens)], ['Bearer present'])
  assert.equal(clock.offsetMs, 0)
  assert.deepEqual([...new Set(lines.map(({ name }) => name))], ['link.down'])
  for (const [i, { status }] of FOREIGN.entries())
    assert.equal(downs()[i]!['reason'], `something that is not Windlass answered ${status}`)
})
