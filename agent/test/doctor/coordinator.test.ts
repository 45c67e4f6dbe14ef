import assert from 'node:assert/strict'
import { once } from 'node:events'
import http from 'node:http'
import type { AddressInfo } from 'node:net'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { OTHER_KEY_REASON } from '@windlass/shared/wire/agent.ts'
import { decodeJwt } from 'jose'
import { WebSocketServer } from 'ws'
import { coordinatorQuestions } from '../../doctor/coordinator.ts'
import { examine } from '../../doctor/finding.ts'
import { makeKeys } from '../../identity.ts'
import { VERSION } from '../../version.ts'
import { refuseUpgrade } from '../_kit/http.ts'

interface Ask {
  /** How far its clock is ahead of ours. */
  aheadMs?: number
  version?: string
  /** Left out by a coordinator of before. */
  baseUrl?: string | null
  /** What it says to an upgrade; `drop`: as a proxy that knows nothing of it. */
  upgrade?: 'open' | 'unauthenticated' | 'other-key' | 'login' | 'drop'
}

const LOGIN = 'HTTP/1.1 401 Unauthorized\r\ncontent-length: 12\r\nconnection: close\r\n\r\nPlease login'

/** A service that says so much about itself; the tokens that came to its socket. */
async function aService(t: TestContext, { aheadMs = 0, version = VERSION, baseUrl, upgrade = 'open' }: Ask = {}) {
  const tokens: string[] = []
  const sockets = new WebSocketServer({ noServer: true })
  const server = http.createServer((_, response) => {
    response.setHeader('date', new Date(Date.now() + aheadMs).toUTCString())
    response.setHeader('content-type', 'application/json')
    response.end(JSON.stringify({ status: 'ok', version, uptimeMs: 1, baseUrl }))
  })
  if (upgrade !== 'drop')
    server.on('upgrade', (request, socket, head) => {
      tokens.push(request.headers.authorization?.replace('Bearer ', '') ?? '')
      if (upgrade === 'open') return sockets.handleUpgrade(request, socket, head, () => undefined)
      if (upgrade === 'login') return socket.end(LOGIN)
      refuseUpgrade(socket, { detail: upgrade === 'other-key' ? { reason: OTHER_KEY_REASON } : {} })
    })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => {
    for (const socket of sockets.clients) socket.terminate()
    server.closeAllConnections()
    server.close()
  })
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, tokens }
}

async function look(url: string, isRegistered = true) {
  const { privateKey } = await makeKeys()
  const identity = isRegistered ? { runner: 'rnr_1', org: 'acme', pool: 'default', privateKey } : undefined
  const findings = await examine(coordinatorQuestions({ url, identity, isSlow: false }), new AbortController().signal)
  return Object.fromEntries(findings.map((finding) => [finding.check, finding]))
}

test('a clock that is ten minutes off is a warning, and what is signed goes by that of the coordinator', async (t) => {
  const { url, tokens } = await aService(t, { aheadMs: 600_000 })
  const { clock, websocket } = await look(url)
  assert.equal(clock?.verdict, 'warn')
  assert.equal(clock?.message, 'The clock of this machine is 10 min behind that of the coordinator.')
  assert.match(clock?.fix ?? '', /timedatectl/)
  assert.equal(websocket?.verdict, 'ok')
  const issuedAt = (decodeJwt(tokens[0] ?? '').iat ?? 0) * 1000
  assert.ok(Math.abs(issuedAt - Date.now() - 600_000) < 60_000, `issued at ${issuedAt}`)
  const days = await look((await aService(t, { aheadMs: -3 * 86_400_000 })).url)
  assert.equal(days['clock']?.verdict, 'fail')
  assert.match(days['clock']?.message ?? '', /3 days ahead of/)
})

test('an agent that is behind is told the command, one that is ahead that the coordinator comes first', async (t) => {
  const behind = await look((await aService(t, { version: '99.10.0' })).url)
  assert.equal(behind['version']?.verdict, 'warn')
  assert.match(behind['version']?.fix ?? '', /^curl -fsSL http:\S+\/install\.sh \| sh -s -- --upgrade$/)
  const ahead = await look((await aService(t, { version: '0.0.9' })).url)
  assert.match(ahead['version']?.fix ?? '', /coordinator should be upgraded first/)
  assert.equal((await look((await aService(t)).url))['version']?.verdict, 'ok')
})

test('a coordinator that does not know its own address is a warning, as webhooks get theirs from it', async (t) => {
  const unset = await look((await aService(t, { baseUrl: null })).url)
  assert.equal(unset['base url']?.verdict, 'warn')
  assert.match(unset['base url']?.fix ?? '', /^set WINDLASS_BASE_URL on the coordinator/)
  const set = await look((await aService(t, { baseUrl: 'https://windlass.example.com' })).url)
  assert.equal(set['base url']?.verdict, 'ok')
  assert.equal((await look((await aService(t)).url))['base url']?.verdict, 'skipped')
})

test('an upgrade that a proxy swallows is told from an agent that is not known', async (t) => {
  const swallowed = await look((await aService(t, { upgrade: 'drop' })).url)
  assert.equal(swallowed['websocket']?.verdict, 'fail')
  assert.match(swallowed['websocket']?.fix ?? '', /headers Upgrade and Connection/)
  const { websocket: login } = await look((await aService(t, { upgrade: 'login' })).url)
  assert.match(login?.message ?? '', /does not open: something that is not Windlass answered 401/)
  const { url } = await aService(t, { upgrade: 'unauthenticated' })
  const unknown = await look(url)
  assert.equal(unknown['websocket']?.verdict, 'fail')
  assert.match(unknown['websocket']?.fix ?? '', /windlass pools token/)
  assert.equal((await look(url, false))['websocket']?.verdict, 'skipped')
  const { websocket: old } = await look((await aService(t, { upgrade: 'other-key' })).url)
  assert.match(old?.message ?? '', /knows this runner \(rnr_1\) by another key/)
  assert.match(old?.fix ?? '', /this state folder is of before that.*register the machine anew/)
})

test('something else than a coordinator is told of as such, and nothing more is asked of it', async (t) => {
  const server = http.createServer((_, response) => response.end('<html>It works!</html>'))
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  const found = await look(`http://127.0.0.1:${(server.address() as AddressInfo).port}`)
  assert.equal(found['http']?.verdict, 'fail')
  assert.match(found['http']?.message ?? '', /something that is not Windlass/)
  for (const check of ['clock', 'version', 'websocket']) assert.equal(found[check]?.verdict, 'skipped')
})
