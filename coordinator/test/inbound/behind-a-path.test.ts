import assert from 'node:assert/strict'
import { createHmac } from 'node:crypto'
import http from 'node:http'
import { once } from 'node:events'
import type { AddressInfo } from 'node:net'
import { after, before, test } from 'node:test'
import { ops } from '@windlass/shared/ops/index.ts'
import { aReceiverOf } from '../_kit/connections.ts'
import { aCoordinatorOfItsOwn, type TestCoordinator } from '../_kit/coordinator.ts'
import { aSession } from '../_kit/credentials.ts'
import { aKeyText } from '../_kit/environments.ts'
import { aHook, deliver, send } from '../_kit/inbound.ts'
import { aWorkflow } from '../_kit/workflow.ts'

const PATH = '/under/here'

let c: TestCoordinator
let session: string
let base: string
let stopProxy: () => void

before(async () => {
  const proxy = http.createServer((request, response) => {
    const { method = 'GET', headers, url = '' } = request
    if (!url.startsWith(`${PATH}/`)) {
      response.writeHead(502).end('not of this path')
      return
    }
    const to = http.request(`${c.url}${url.slice(PATH.length)}`, { method, headers }, (from) => {
      response.writeHead(from.statusCode ?? 502, from.headers)
      from.pipe(response)
    })
    request.pipe(to)
  })
  proxy.listen(0, '127.0.0.1')
  await once(proxy, 'listening')
  stopProxy = () => {
    proxy.closeAllConnections()
    proxy.close()
  }
  base = `http://127.0.0.1:${(proxy.address() as AddressInfo).port}${PATH}`
  c = await aCoordinatorOfItsOwn({ SECRET_KEY: aKeyText(), BASE_URL: base })
  session = await aSession(c.db, { orgId: c.orgId })
})
after(async () => {
  stopProxy()
  await c.stop()
})

test('the address of a webhook has the path of the proxy, and is one that can be posted to', async () => {
  const { slug } = await aWorkflow(c, { descriptor: { webhook: {} } })
  const hook = await aHook(c, session, slug)
  assert.equal(hook.url, `${base}/v1/hooks/${hook.id}`)
  const { status, receipt } = await deliver(hook)
  assert.deepEqual([status, receipt.delivery.outcome], [200, 'triggered'])
})

test('a sender that signs the address signs it as he was given it', async () => {
  const hmac = { header: 'X-Signature', encoding: 'hex', signed: '{url}{body}' } as const
  const made = await c.call(
    ops.connections.create,
    { org: c.org, name: 'by-url', kind: 'hmac', hmac },
    { apiKey: session },
  )
  await aReceiverOf(c, 'by-url', ['*'])
  const { url } = made.connection
  assert.ok(url.startsWith(`${base}/v1/inbound/`), url)
  const signed = createHmac('sha256', made.secret).update(`${url}{}`).digest('hex')
  const headers = { 'content-type': 'application/json', 'x-signature': signed }
  const { status, receipt } = await send(url, { body: '{}', headers })
  assert.deepEqual([status, receipt.delivery.outcome], [200, 'triggered'])
})

test('the document of the API names the address with the path', async () => {
  const document = (await (await fetch(`${base}/v1/openapi.json`)).json()) as { servers: { url: string }[] }
  assert.deepEqual(
    document.servers.map(({ url }) => url),
    [base],
  )
})

test('the script that installs an agent fetches from behind the path', async () => {
  const response = await fetch(`${base}/install.sh`)
  const text = await response.text()
  assert.equal(response.status, 200, text)
  assert.ok(text.includes(`\nBASE='${base}'\n`))
})
