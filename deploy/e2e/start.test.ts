// What `npm start` promises: the first start, the second, the wrong start and every way to end.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { readdirSync, statSync } from 'node:fs'
import { createServer, type AddressInfo } from 'node:net'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { processesMarked } from '../tools/leftovers.ts'
import { PROJECT } from '../tools/source-files.ts'
import { type Access, type Instance, makeHome, nothingIsLeft, startInstance } from './_kit/instance.ts'
import { deploy, ended, programFiles, trigger } from './_kit/runs.ts'
import { type Watched, watchStart } from './_kit/start-process.ts'
import { until } from './_kit/until.ts'

const QUIET = { WINDLASS_START_EXAMPLE: 'false' }
const FIRST_START_MS = 60_000

const place = makeHome()
const { home } = place
let access: Access

after(() => place.remove())

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
  await instance.process.says('"sentence":"Up in', FIRST_START_MS)
  assert.match(instance.process.stderr(), /▸ duplicates/)
  assert.match(instance.process.stderr(), /lockfile-report completed/)
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

test('after kill -9 of the start itself coordinator and agent end, and the next start goes on with the same database', async () => {
  const killed = await startInstance({ home })
  await deploy(killed.client, programFiles('healthy'))
  const ids = await Promise.all(Array.from({ length: 4 }, () => trigger(killed.client, 'healthy', { takesMs: 3000 })))
  killed.process.child.kill('SIGKILL')
  await until(
    'the end of coordinator and agent',
    async () => !(await killed.pidOf('coordinator')) && !(await killed.pidOf('agent')),
    { ms: 40_000 },
  )
  await until('the end of their programs', () => processesMarked(join(home, 'agent')).length === 0)
  const next = await startInstance({ home })
  assert.match(next.process.stderr(), /postgres\.(adopted|started)/)
  for (const id of ids) assert.equal((await ended(next.client, id, 30_000)).status, 'completed')
  await next.stop()
})

test('kill -9 of every part at once: each comes back where it was', async () => {
  const instance = await startInstance({ home })
  const before = await pids(instance)
  for (const pid of before) process.kill(pid, 'SIGKILL')
  const isNew = async () => {
    const now = await pids(instance).catch(() => [])
    return now.length === 3 && now.every((pid) => !before.includes(pid))
  }
  await until('three new processes', isNew, { ms: 30_000, more: () => instance.process.stderr().slice(-3000) })
  const id = await until('an answer', () => trigger(instance.client, 'healthy', {}).catch(() => undefined), {
    ms: 20_000,
  })
  assert.equal((await ended(instance.client, id, 30_000)).status, 'completed')
  await instance.stop()
})

async function pids(instance: Instance): Promise<number[]> {
  const found = await Promise.all((['coordinator', 'agent', 'postgres'] as const).map((part) => instance.pidOf(part)))
  return found.filter((pid) => pid !== undefined)
}

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

for (const [name, value] of [
  ['WINDLASS_PROT', '1'],
  ['WINDLASS_PORT', 'many'],
  ['WINDLASS_AGENT_SLOT', '4'],
  ['WINDLASS_START_EXAMPEL', 'false'],
  ['WINDLASS_LEASE_MS', '1'],
] as const) {
  test(`${name}=${value} stops the start and is named`, async () => {
    const { code, started } = await refused({ [name]: value })
    assert.equal(code, 78)
    assert.match(started.stderr(), new RegExp(name))
  })
}

const nobody = { uid: 65_534, gid: 65_534 }

test('an ordinary user can start it', { skip: whyNoOtherUser() }, async () => {
  const theirs = makeHome(nobody)
  try {
    const instance = await startInstance({ home: theirs.home, env: { ...QUIET, HOME: theirs.home }, user: nobody })
    await deploy(instance.client, programFiles('healthy'))
    assert.equal((await ended(instance.client, await trigger(instance.client, 'healthy', {}))).status, 'completed')
    await instance.stop()
    await nothingIsLeft(theirs.home)
  } finally {
    theirs.remove()
  }
})

/** Nothing where it can be tried. */
function whyNoOtherUser(): string | false {
  if (process.getuid?.() !== 0) return 'not root: every other test here runs as an ordinary user already'
  const readable = spawnSync(process.execPath, ['--version'], { cwd: PROJECT, ...nobody })
  return readable.status === 0 ? false : 'an ordinary user may not read this checkout'
}
