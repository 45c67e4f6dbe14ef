import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { exampleOf, isDocumented } from '@windlass/shared/ops/words.ts'
import { allOps, ops } from '@windlass/shared/ops/index.ts'
import { createHandlers, type HandlerNeeds } from '../../api/index.ts'
import { findBrowser, openBrowser, type Page } from '../_kit/browser.ts'
import { untilPolled } from '../_kit/until.ts'
import { startStub, type StubOptions, type StubServer } from '../http/stub-server.ts'

const executable = findBrowser()
const skip = executable === undefined ? 'no chromium in PATH; on Debian: apt-get install chromium' : false

/** Another address than that under which the page is open here. */
const PUBLIC = 'https://windlass.example.com'
const RENDERED = 'document.querySelectorAll(".opblock").length'

let server: StubServer
let page: Page
before(async () => {
  if (executable === undefined) return
  const { docs, docsFile, openapi } = createHandlers({ config: { baseUrl: PUBLIC } } as HandlerNeeds).service
  const me = () => exampleOf(ops.account.get).output
  const handlers = {
    'service.docs': docs,
    'service.docsFile': docsFile,
    'service.openapi': openapi,
    'account.get': me,
  } as unknown as StubOptions['handlers']
  server = await startStub({ handlers })
  page = await openBrowser(executable)
  await page.open(`${server.url}/v1/docs`)
  await untilPolled('operations on the page', () => page.evaluate<number>(RENDERED))
})
after(async () => {
  await page?.close()
  await server?.close()
})

test('the page shows every operation and asks nobody but its own coordinator', { skip }, async () => {
  assert.equal(await page.evaluate('document.title'), 'Windlass API')
  assert.equal(await page.evaluate(RENDERED), allOps.filter(isDocumented).length)
  const names = new Set(
    page.requests.filter((url) => !url.startsWith('data:')).map((url) => url.replace(server.url, '')),
  )
  const own = [
    '/v1/docs',
    '/v1/docs/swagger-ui.css',
    '/v1/docs/swagger-ui-bundle.js',
    '/v1/docs/start.js',
    '/v1/openapi.json',
  ]
  assert.deepEqual([...names].sort(), own.sort())
  assert.deepEqual(page.complaints, [])
})

test('with a credential pasted under Authorize an operation can be tried', { skip }, async () => {
  await page.click('.authorize')
  await page.click('#auth-bearer-value')
  await page.type('owner')
  await page.click('.auth-btn-wrapper .authorize')
  await page.click('.btn-done')
  await page.click('#operations-account-accountGet .opblock-summary-control')
  await page.click(await there('#operations-account-accountGet .try-out__btn'))
  await page.click(await there('#operations-account-accountGet .execute'))
  const shown = await there('#operations-account-accountGet .live-responses-table .microlight')
  const text = await page.evaluate<string>(`document.querySelector(${JSON.stringify(shown)}).textContent`)
  assert.deepEqual(JSON.parse(text), exampleOf(ops.account.get).output)
  assert.deepEqual(page.complaints, [])
})

test('what would go elsewhere, or was written into the page, is stopped', { skip }, async () => {
  const before = page.requests.length
  const asked = `fetch('http://elsewhere.example/').then(() => 'went', () => 'stopped')`
  assert.equal(await page.evaluate(asked), 'stopped')
  await page.evaluate(`document.body.insertAdjacentHTML('beforeend', '<img src="x" onerror="document.title = 1">')`)
  for (const rule of ['connect-src', 'script-src'])
    await untilPolled(`a word about ${rule}`, () => page.complaints.some((each) => each.includes(rule)))
  assert.equal(await page.evaluate('document.title'), 'Windlass API')
  assert.ok(page.requests.slice(before).every((url) => !url.includes('elsewhere')))
})

async function there(selector: string): Promise<string> {
  const isThere = `document.querySelector(${JSON.stringify(selector)}) !== null`
  await untilPolled(selector, () => page.evaluate<boolean>(isThere))
  return selector
}
