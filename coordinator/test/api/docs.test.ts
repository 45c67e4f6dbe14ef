import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { BytesAnswer } from '../../api/call.ts'
import { createHandlers, type HandlerNeeds } from '../../api/index.ts'
import { envelope, startStub, type StubOptions, type StubServer } from '../http/stub-server.ts'

let server: StubServer
const { docs, docsFile, openapi, workflowSchema } = createHandlers({ config: {} } as HandlerNeeds).service

before(async () => {
  const handlers = {
    'service.docs': docs,
    'service.docsFile': docsFile,
    'service.openapi': openapi,
    'service.workflowSchema': workflowSchema,
  } as unknown as StubOptions['handlers']
  server = await startStub({ handlers })
})
after(() => server.close())

test('the page is HTML whose every address is its own, under a policy that forbids all others', async () => {
  const response = await fetch(`${server.url}/v1/docs`)
  assert.equal(response.status, 200)
  assert.equal(response.headers.get('content-type'), 'text/html; charset=utf-8')
  const policy = response.headers.get('content-security-policy') ?? ''
  assert.match(policy, /default-src 'none'/)
  assert.match(policy, /script-src 'self'(;|$)/)
  assert.match(policy, /frame-ancestors 'none'/)
  assert.doesNotMatch(policy, /https?:|\*/)
  const html = await response.text()
  assert.match(html, /<title>Windlass API<\/title>/)
  assert.doesNotMatch(html, /<script>|\son\w+=|https?:\/\//)
})

test('every file that the page names is there, with its type', async () => {
  const html = await (await fetch(`${server.url}/v1/docs`)).text()
  const named = [...html.matchAll(/(?:src|href)="(docs\/[^"]+)"/g)].map((match) => match[1]!)
  assert.deepEqual(named, ['docs/swagger-ui.css', 'docs/swagger-ui-bundle.js', 'docs/start.js'])
  for (const file of named) {
    const response = await fetch(`${server.url}/v1/${file}`)
    assert.equal(response.status, 200, file)
    const wanted = file.endsWith('.css') ? 'text/css; charset=utf-8' : 'text/javascript; charset=utf-8'
    assert.equal(response.headers.get('content-type'), wanted)
    assert.equal(response.headers.get('x-content-type-options'), 'nosniff')
    assert.ok((await response.text()).length > 100, file)
  }
})

test('a file that the client has already is not sent again', async () => {
  for (const path of ['/v1/docs', '/v1/docs/swagger-ui.css']) {
    const etag = (await fetch(server.url + path)).headers.get('etag') ?? ''
    assert.match(etag, /^".+"$/)
    const again = await fetch(server.url + path, { headers: { 'if-none-match': etag } })
    assert.equal(again.status, 304, path)
    assert.equal(again.headers.get('etag'), etag)
    assert.equal(await again.text(), '')
    const other = await fetch(server.url + path, { headers: { 'if-none-match': '"another"' } })
    assert.equal(other.status, 200)
    await other.text()
  }
})

test('nothing else of the package or of the disk is served', async () => {
  const names = [
    'index.html',
    'swagger-initializer.js',
    'package.json',
    '..%2fpackage.json',
    '%2e%2e%2f%2e%2e%2fpackage.json',
    '..%5cservice.ts',
    'constructor',
    '__proto__',
    'swagger-ui.css%00.png',
  ]
  for (const name of names) {
    const response = await fetch(`${server.url}/v1/docs/${name}`)
    assert.equal(response.status, 404, name)
    assert.equal((await envelope(response)).code, 'NOT_FOUND')
  }
})

test('the document and the schema of workflow.jsonc are JSON that anybody may read, and are sent once', async () => {
  for (const [path, key] of [
    ['/v1/openapi.json', 'openapi'],
    ['/openapi.json', 'openapi'],
    ['/schemas/workflow.json', '$schema'],
  ] as const) {
    const response = await fetch(server.url + path)
    assert.equal(response.status, 200, path)
    assert.equal(response.headers.get('content-type'), 'application/json; charset=utf-8')
    const answer = (await response.json()) as Record<string, unknown>
    assert.equal(typeof answer[key], 'string', path)
    const again = await fetch(server.url + path, { headers: { 'if-none-match': response.headers.get('etag') ?? '' } })
    assert.equal(again.status, 304, path)
  }
})

test('the bytes and the hash of what is the same for everybody are made once', async () => {
  for (const handler of [openapi, workflowSchema]) {
    const answers = [await handler(undefined as never), await handler(undefined as never)]
    assert.ok(answers[0] instanceof BytesAnswer && answers[0].etag)
    assert.equal(answers[0], answers[1])
  }
})
