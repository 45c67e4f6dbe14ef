import assert from 'node:assert/strict'
import { once } from 'node:events'
import { createServer, type Server, type ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import { type TestContext, test } from 'node:test'
import { createPollFetch } from '../../link/poll-fetch.ts'

async function answering(t: TestContext, answer: (response: ServerResponse, body: string) => void): Promise<string> {
  const server: Server = createServer((request, response) => {
    let body = ''
    request.setEncoding('utf8')
    request.on('data', (chunk: string) => (body += chunk))
    request.on('end', () => answer(response, body))
  })
  server.listen(0, '127.0.0.1')
  await once(server, 'listening')
  t.after(() => server.closeAllConnections())
  t.after(() => server.close())
  return `http://127.0.0.1:${(server.address() as AddressInfo).port}/`
}

test('body, status and headers arrive, both ways', async (t) => {
  const url = await answering(t, (response, body) => response.writeHead(201, { 'x-told': 'yes' }).end(`heard ${body}`))
  const response = await createPollFetch()(url, { method: 'POST', body: '{"slots":1}' })
  assert.deepEqual([response.status, response.headers.get('x-told')], [201, 'yes'])
  assert.equal(await response.text(), 'heard {"slots":1}')
})

test('a status that has no body is an answer too', async (t) => {
  for (const status of [204, 205, 304]) {
    const url = await answering(t, (response) => response.writeHead(status).end())
    assert.equal((await createPollFetch()(url)).status, status)
  }
})

test('an answer that is cut off in the middle is an error of the poll', async (t) => {
  const url = await answering(t, (response) => {
    response.writeHead(200, { 'content-length': '100' })
    response.write('half', () => response.destroy())
  })
  await assert.rejects(createPollFetch()(url))
})

test('a poll that is given up ends at once', async (t) => {
  const giveUp = new AbortController()
  const url = await answering(t, () => giveUp.abort())
  await assert.rejects(createPollFetch()(url, { method: 'POST', body: '{}', signal: giveUp.signal }), {
    name: 'AbortError',
  })
})
