// What `npm start` promises: the first start, the second and the wrong start.
import assert from 'node:assert/strict'
import { readdirSync, readFileSync, statSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { type Access, makeHome, startInstance } from './_kit/instance.ts'
import { ENDED_MS, type Watched, watchStart } from './_kit/start-process.ts'

const temp = makeHome()
const { home } = temp
let access: Access

after(() => temp.remove())

/** A start that is meant to fail, with its exit code. */
async function refused(env: Record<string, string>): Promise<{ code: number | string; started: Watched }> {
  const other = makeHome()
  try {
    const started = watchStart({ env: { WINDLASS_PORT: '0', WINDLASS_HOME: other.home, ...env } })
    const code = await started.ended()
    assert.equal(started.stdout(), '')
    assert.deepEqual(readdirSync(other.home), [], 'it began to make a home')
    return { code, started }
  } finally {
    other.remove()
  }
}

test('the first start deploys the example, executes it in sight and answers one line on stdout', async () => {
  const instance = await startInstance({ home })
  access = instance.access
  await instance.process.says('"sentence":"Up in', ENDED_MS)
  assert.match(instance.process.stderr(), /▸ duplicates/)
  assert.match(instance.process.stderr(), /lockfile-report completed/)
  const report = readFileSync(join(home, 'example-report.json'), 'utf8')
  assert.ok(Object.keys(JSON.parse(report) as object).length > 1)
  assert.ok(!instance.process.stderr().includes(report.slice(0, 100)), 'the report fills the screen')
  assert.deepEqual(instance.process.stdout().split('\n').slice(1), [''])
  assert.deepEqual(Object.keys(access), ['url', 'org', 'apiKey'])
  const { runs } = await instance.client.runs.list({})
  assert.deepEqual(
    runs.map((run) => [run.workflow.slug, run.status]),
    [['lockfile-report', 'completed']],
  )
  assert.equal(statSync(home).mode & 0o777, 0o700)
  await instance.stop()
})

test('a second start reuses key and data, and a third on the same home is refused', async () => {
  const instance = await startInstance({ home })
  assert.equal(instance.access.apiKey, access.apiKey)
  const { runs } = await instance.client.runs.list({})
  assert.equal(runs.length, 1, 'the example ran again')
  const third = watchStart({ env: { WINDLASS_PORT: '0', WINDLASS_HOME: home } })
  assert.equal(await third.ended(), 1)
  assert.match(third.stderr(), /in use by the process \d+.*WINDLASS_HOME/)
  assert.equal((await instance.client.runs.list({})).runs.length, 1, 'the third start hurt the second')
  await instance.stop()
})

test('a port that is taken is named, with the setting that helps', async () => {
  const server = createServer()
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  try {
    const { port } = server.address() as AddressInfo
    const { code, started } = await refused({ WINDLASS_PORT: String(port) })
    assert.equal(code, 1)
    assert.match(started.stderr(), new RegExp(`127\\.0\\.0\\.1:${port}.*WINDLASS_PORT`))
  } finally {
    server.close()
  }
})

test('a setting that is none stops the start and is named', async () => {
  const { code, started } = await refused({ WINDLASS_PROT: '1' })
  assert.equal(code, 78)
  assert.match(started.stderr(), /WINDLASS_PROT/)
})
