/** Deploys over REST and over MCP: the bundle that agents get holds nothing of the coordinator's machine. */
import assert from 'node:assert/strict'
import { mkdtemp, rm, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join, relative } from 'node:path'
import { buffer } from 'node:stream/consumers'
import { after, before, test } from 'node:test'
import { pathToFileURL } from 'node:url'
import { ops } from '@windlass/shared/ops/index.ts'
import { unpacked } from '../_kit/unpacked.ts'
import { contentKey } from '../../objects/key.ts'
import { aCoordinator, type TestCoordinator } from '../_kit/coordinator.ts'
import { tool } from '../_kit/mcp.ts'
import { filesOf } from '../_kit/workflow-files.ts'

let c: TestCoordinator
let folder: string
const SECRET = 'the key that seals all secrets'

before(async () => {
  c = await aCoordinator()
  folder = await mkdtemp(join(tmpdir(), 'windlass-host-'))
  await writeFile(join(folder, 'secret.key'), SECRET)
  await writeFile(join(folder, 'admin.json'), JSON.stringify({ password: SECRET }))
})
after(async () => {
  await rm(folder, { recursive: true, force: true })
  await c.stop()
})

/** A program whose map, in its own text, names files of the machine and leaves it to the bundler to read them. */
function stealing(slug: string) {
  const sources = ['/etc/passwd', join(folder, 'secret.key'), '/proc/self/environ'].map(
    (file) => pathToFileURL(file).href,
  )
  const map = JSON.stringify({ version: 3, sources, names: [], mappings: 'AAAA,CCAA,CCAA' })
  const address = `data:application/json;base64,${Buffer.from(map).toString('base64')}`
  const program = `export const run = (): number => 1\n//# sourceMappingURL=${address}\n`
  return filesOf({ 'workflow.jsonc': `{ "slug": "${slug}" }`, 'index.ts': program })
}

async function bundleOf(slug: string): Promise<string> {
  const [row] = await c.db<{ bundleDigest: string }[]>`
    select v.bundle_digest
    from workflow_versions v
    join workflows w on w.id = v.workflow_id
    where w.slug = ${slug} and w.org_id = ${c.orgId}`
  const bytes = await c.deps.objects.stream(contentKey(row!.bundleDigest))
  const files = await unpacked(await buffer(bytes!))
  assert.deepEqual(
    files.map(({ path }) => path),
    ['main.mjs', 'main.mjs.map'],
  )
  return JSON.stringify(files)
}

test('a deploy over REST brings no file of the machine into the bundle', async () => {
  await c.call(ops.workflows.create, { org: c.org, files: stealing('by-rest') })
  assert.doesNotMatch(await bundleOf('by-rest'), /seals all secrets|root:x|PATH=/)
})

test('a deploy over MCP brings no file of the machine into the bundle', async () => {
  const base = { url: c.url, apiKey: c.apiKey }
  const { isError } = await tool(base, 'create_workflow', { files: stealing('by-mcp') })
  assert.equal(isError, false)
  assert.doesNotMatch(await bundleOf('by-mcp'), /seals all secrets|root:x|PATH=/)
})

test('a program that looks files up by a pattern is refused over REST and over MCP', async () => {
  const path = `./${relative(process.cwd(), folder)}`
  const program = `export const run = (x: string) => import(\`${path}/\${x}.json\`)`
  const files = filesOf({ 'workflow.jsonc': '{ "slug": "by-pattern" }', 'index.ts': program })
  await assert.rejects(c.call(ops.workflows.create, { org: c.org, files }), {
    code: 'VALIDATION_FAILED',
    message: /^index\.ts:1:\d+: a path that is made at run time cannot be bundled/,
  })
  const { isError, value } = await tool({ url: c.url, apiKey: c.apiKey }, 'create_workflow', { files })
  assert.equal(isError, true)
  assert.equal(value.error.code, 'VALIDATION_FAILED')
})
