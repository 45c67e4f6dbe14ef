import assert from 'node:assert/strict'
import { createHash, randomBytes } from 'node:crypto'
import { readdir, readlink, writeFile } from 'node:fs/promises'
import { connect } from 'node:net'
import { join } from 'node:path'
import { test } from 'node:test'
import { createLog } from '@windlass/shared/log.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { bundleOf } from '../../workflows/read.ts'
import { anAgent } from '../_kit/agent.ts'
import { aCoordinator } from '../_kit/coordinator.ts'
import { untilPolled } from '../_kit/until.ts'
import { filesOf } from '../_kit/workflow-files.ts'

// Of each reader that took nothing the whole bundle lay in memory.
test('a bundle goes out whole and by pieces, and is let go with its reader', async (t) => {
  const c = await aCoordinator()
  t.after(() => c.stop())
  const data = randomBytes(8_000_000).toString('base64')
  const files = filesOf({
    'workflow.jsonc': '{ "slug": "heavy" }',
    'index.ts': `export const data = '${data}'
export const run = () => data.length`,
  })
  const { version } = await c.call(ops.workflows.create, { org: c.org, files })
  const agent = await anAgent(c)
  const authorization = `Bearer ${await agent.token()}`
  const path = `/runner/v1/bundles/${version.bundleDigest}`

  const response = await fetch(c.url + path, { headers: { authorization } })
  const bytes = Buffer.from(await response.arrayBuffer())
  assert.equal(response.headers.get('content-length'), String(bytes.length))
  assert.equal(createHash('sha256').update(bytes).digest('hex'), version.bundleDigest)
  const head = await fetch(c.url + path, { method: 'HEAD', headers: { authorization } })
  assert.equal(head.headers.get('content-length'), String(bytes.length))

  const part = (range: string) => fetch(c.url + path, { headers: { authorization, range } })
  const from = 1_000_017
  const rest = await part(`bytes=${from}-`)
  assert.equal(rest.status, 206)
  assert.equal(rest.headers.get('content-range'), `bytes ${from}-${bytes.length - 1}/${bytes.length}`)
  assert.equal(rest.headers.get('content-length'), String(bytes.length - from))
  assert.ok(Buffer.from(await rest.arrayBuffer()).equals(bytes.subarray(from)))
  assert.ok(Buffer.from(await (await part('bytes=10-200000')).arrayBuffer()).equals(bytes.subarray(10, 200_001)))
  assert.equal((await part(`bytes=${bytes.length}-`)).status, 416)

  // More than a socket takes at once: what is not read is still in the file.
  const reader = connect(Number(new URL(c.url).port), '127.0.0.1').pause()
  reader.write(`GET ${path} HTTP/1.1\r\nhost: a\r\nauthorization: ${authorization}\r\n\r\n`)
  const isOpen = () => isOpenHere(version.bundleDigest)
  await untilPolled('it is being read', isOpen)
  await (await fetch(c.url + path, { headers: { authorization } })).arrayBuffer()
  assert.equal(await isOpen(), true, 'nobody has taken the rest')
  reader.destroy()
  await untilPolled('it was let go', async () => !(await isOpen()))
})

test('a bundle that rotted on the disk is said to be damaged by the coordinator too', async (t) => {
  const c = await aCoordinator()
  t.after(() => c.stop())
  const files = filesOf({ 'workflow.jsonc': '{ "slug": "rots" }', 'index.ts': 'export const run = () => 1' })
  const { bundleDigest } = (await c.call(ops.workflows.create, { org: c.org, files })).version
  const folder = join(c.deps.config.home, 'objects')
  const names = await readdir(folder, { recursive: true })
  await writeFile(
    join(
      folder,
      names.find((name) => name.endsWith(bundleDigest))!,
    ),
    'stale',
  )
  const lines: string[] = []
  const log = createLog({}, 'info', { write: (line) => lines.push(line) })
  const { pieces } = await bundleOf({ db: c.db, objects: c.deps.objects, log }, c.orgId, bundleDigest)
  await assert.rejects(Array.fromAsync(pieces), /is damaged on disk/)
  assert.match(lines.join(''), new RegExp(`"object.damaged".*${bundleDigest}`))
})

async function isOpenHere(digest: string): Promise<boolean> {
  const descriptors = await readdir('/proc/self/fd')
  const files = descriptors.map((one) => readlink(join('/proc/self/fd', one)).catch(() => ''))
  return (await Promise.all(files)).some((file) => file.endsWith(digest))
}
