import assert from 'node:assert/strict'
import { once } from 'node:events'
import { writeFileSync } from 'node:fs'
import https from 'node:https'
import net from 'node:net'
import type { AddressInfo, Server } from 'node:net'
import path from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { WebSocket, WebSocketServer } from 'ws'
import { examine } from '../../doctor/finding.ts'
import { networkQuestions } from '../../doctor/network.ts'
import { proxyFor } from '../../doctor/proxy.ts'
import { trustCaFile } from '../../trust.ts'
import { aFolder } from '../_kit/an-agent.ts'
import { aCertificate, whyNoOpenssl } from '@windlass/shared/test/_kit/certificate.ts'

const never = new AbortController().signal

async function look(url: string, caFile?: string, allowHttp = false) {
  const findings = await examine(networkQuestions({ url, caFile, allowHttp }), never)
  return Object.fromEntries(findings.map((finding) => [finding.check, finding]))
}

async function listening(t: TestContext, server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return (server.address() as AddressInfo).port
}

test('a name that nobody knows, and a port on which nobody answers, are told apart', async (t) => {
  const named = await look('http://no-such-host.invalid:8787')
  assert.equal(named['dns']?.verdict, 'fail')
  assert.match(named['dns']?.fix ?? '', /WINDLASS_URL/)
  assert.equal(named['tcp']?.verdict, 'skipped')
  const server = net.createServer()
  const port = await listening(t, server)
  assert.equal((await look(`http://127.0.0.1:${port}`))['tcp']?.verdict, 'ok')
  server.close()
  await once(server, 'close')
  const silent = await look(`http://127.0.0.1:${port}`)
  assert.equal(silent['tcp']?.verdict, 'fail')
  assert.match(silent['tcp']?.message ?? '', /ECONNREFUSED/)
})

test(
  'an authority of one’s own is trusted by its file, in fetch and in WebSockets, and by nothing else',
  { skip: whyNoOpenssl() },
  async (t) => {
    const { folder, remove } = await aFolder()
    t.after(remove)
    const { key, cert, file } = aCertificate(folder)
    const server = https.createServer({ key, cert }, (_, response) => response.end('hello'))
    new WebSocketServer({ server })
    const url = `https://localhost:${await listening(t, server)}`

    const strange = await look(url)
    assert.equal(strange['tls']?.verdict, 'fail')
    assert.match(strange['tls']?.fix ?? '', /--ca-file or WINDLASS_AGENT_CA_FILE/)
    await assert.rejects(fetch(url))

    trustCaFile(file)
    const known = await look(url, file)
    assert.equal(known['tls']?.verdict, 'ok', known['tls']?.message)
    assert.match(known['tls']?.message ?? '', /TLSv1\.3, certificate of Windlass tests, good for \d+ more days/)
    assert.equal(await (await fetch(url)).text(), 'hello')
    const socket = new WebSocket(url.replace('https', 'wss'))
    await once(socket, 'open')
    socket.terminate()
    // Names are still looked at.
    assert.match((await look(url.replace('localhost', '127.0.0.1')))['tls']?.fix ?? '', /name in WINDLASS_URL/)
  },
)

test('a certificate that ends soon is a warning', { skip: whyNoOpenssl() }, async (t) => {
  const { folder, remove } = await aFolder()
  t.after(remove)
  const { key, cert, file } = aCertificate(folder, 3)
  trustCaFile(file)
  const port = await listening(t, https.createServer({ key, cert }))
  const { tls } = await look(`https://localhost:${port}`, file)
  assert.equal(tls?.verdict, 'warn', tls?.message)
  assert.match(tls?.message ?? '', /ends in 2 days/)
})

test('a file without a certificate, and one that is not there, are refused by the name of the setting', async (t) => {
  const { folder, remove } = await aFolder()
  t.after(remove)
  const file = path.join(folder, 'empty.pem')
  writeFileSync(file, 'nothing')
  assert.throws(() => trustCaFile(file), /WINDLASS_AGENT_CA_FILE: .*holds no certificate/)
  assert.throws(() => trustCaFile(path.join(folder, 'none.pem')), /WINDLASS_AGENT_CA_FILE: .*ENOENT/)
})

test('a proxy that the agent does not use is told of, and left out where NO_PROXY says so', async (t) => {
  const url = new URL('https://windlass.example.org:8443')
  const set = (name: string, value: string) => {
    process.env[name] = value
    t.after(() => delete process.env[name])
  }
  set('https_proxy', 'http://user:hunter2@proxy.example.org:3128')
  assert.equal(proxyFor(url), undefined)
  assert.equal(proxyFor(new URL('http://windlass.example.org'), { isHeeded: true }), undefined)
  const { proxy } = await look('https://windlass.invalid')
  assert.equal(proxy?.verdict, 'warn')
  assert.match(proxy?.message ?? '', /http:\/\/proxy\.example\.org:3128\), and the agent does not use it/)
  assert.doesNotMatch(JSON.stringify(proxy), /hunter2/)
  assert.match(proxy?.fix ?? '', /NODE_USE_ENV_PROXY=1/)
  set('NODE_USE_ENV_PROXY', '1')
  assert.equal(proxyFor(url), 'http://user:hunter2@proxy.example.org:3128')
  for (const list of [
    '*',
    'other.org, .example.org',
    '*.example.org',
    'windlass.example.org',
    'windlass.example.org:8443',
  ]) {
    set('no_proxy', list)
    assert.equal(proxyFor(url), undefined, list)
  }
  set('no_proxy', 'example.org,windlass.example.org:443')
  assert.notEqual(proxyFor(url), undefined)
})

test('plain http to another machine fails, and is a warning where it was asked for', async () => {
  const refused = (await look('http://no-such-host.invalid:8787'))['tls']
  const url = 'http://192.0.2.1:8787'
  const [tls] = networkQuestions({ url, caFile: undefined, allowHttp: false }).slice(-1)
  const [asked] = networkQuestions({ url, caFile: undefined, allowHttp: true }).slice(-1)
  assert.equal(refused?.verdict, 'skipped')
  assert.deepEqual(
    [await tls!.ask(never), await asked!.ask(never)].map(({ verdict }) => verdict),
    ['fail', 'warn'],
  )
})
