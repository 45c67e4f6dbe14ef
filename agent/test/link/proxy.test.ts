import assert from 'node:assert/strict'
import { spawn } from 'node:child_process'
import { once } from 'node:events'
import http from 'node:http'
import https from 'node:https'
import net from 'node:net'
import type { AddressInfo, Server } from 'node:net'
import path from 'node:path'
import { text } from 'node:stream/consumers'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { WebSocketServer } from 'ws'
import { aFolder } from '../_kit/an-agent.ts'
import { aCertificate, whyNoOpenssl } from '@windlass/shared/test/_kit/certificate.ts'

const AGENT = path.resolve(import.meta.dirname, '../..')

/** Polls, fetches and opens a socket, as the agent does each. */
const DIALS = `
import { trustCaFile } from '${AGENT}/trust.ts'
import { createPollFetch } from '${AGENT}/link/poll-fetch.ts'
import { CONNECT_MS, openSocket } from '${AGENT}/link/socket.ts'
const [url, file] = process.argv.slice(1)
trustCaFile(file)
const said = [await (await createPollFetch()(url)).text(), await (await fetch(url)).text()]
const opened = await new Promise((resolve) => {
  const onOpen = (socket) => (socket.close('seen'), resolve('opened'))
  const { ended } = openSocket({ url, token: 'x', connectMs: CONNECT_MS, onOpen, onFrame: () => {} })
  ended.then(({ detail }) => resolve(detail))
})
console.log([...said, opened].join(' '))
process.exit(0)
`

async function listening(t: TestContext, server: Server): Promise<number> {
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.close())
  return (server.address() as AddressInfo).port
}

/** A proxy that connects whoever asks, and keeps in mind where to. */
async function aProxy(t: TestContext): Promise<{ port: number; asked: string[] }> {
  const asked: string[] = []
  const server = http.createServer().on('connect', (request, client) => {
    asked.push(request.url ?? '')
    const [host = '', port] = (request.url ?? '').split(':')
    const there = net.connect(Number(port), host, () => {
      client.write('HTTP/1.1 200 Connection established\r\n\r\n')
      there.pipe(client).pipe(there)
    })
    for (const socket of [there, client]) socket.on('error', () => there.destroy())
  })
  return { port: await listening(t, server), asked }
}

test(
  'with NODE_USE_ENV_PROXY=1 polls, requests and the WebSocket all go through the proxy',
  { skip: whyNoOpenssl() },
  async (t) => {
    const { folder, remove } = await aFolder()
    t.after(remove)
    const { key, cert, file } = aCertificate(folder)
    const server = https.createServer({ key, cert }, (_, response) => response.end('hello'))
    new WebSocketServer({ server })
    const port = await listening(t, server)
    const proxy = await aProxy(t)
    const dial = async (more: Record<string, string>) => {
      const env = { PATH: process.env['PATH'], HTTPS_PROXY: `http://127.0.0.1:${proxy.port}`, ...more }
      const args = ['--input-type=module', '--disable-warning=ExperimentalWarning', '-e', DIALS, '--']
      const child = spawn(process.execPath, [...args, `https://localhost:${port}`, file], { env, timeout: 20_000 })
      const [said, errors] = await Promise.all([text(child.stdout), text(child.stderr)])
      assert.equal(said.trim(), 'hello hello opened', errors)
    }
    await dial({ NODE_USE_ENV_PROXY: '1' })
    assert.deepEqual(proxy.asked, [`localhost:${port}`, `localhost:${port}`, `localhost:${port}`])
    await dial({ NODE_USE_ENV_PROXY: '1', NO_PROXY: 'localhost' })
    await dial({})
    assert.equal(proxy.asked.length, 3)
  },
)
