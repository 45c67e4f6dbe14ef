// What `npm start` promises when it or all of it is killed at once, and to somebody who is not root.
import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { join } from 'node:path'
import { after, test } from 'node:test'
import { processesMarked } from '../../tools/leftovers.ts'
import { PROJECT } from '../../tools/source-files.ts'
import { type Instance, makeHome, nothingIsLeft, startInstance } from '../_kit/instance.ts'
import { patiently } from '../_kit/responder.ts'
import { deploy, ended, programFiles, trigger } from '../_kit/runs.ts'
import { ENDED_MS } from '../_kit/start-process.ts'
import { until } from '../_kit/until.ts'

const QUIET = { WINDLASS_START_EXAMPLE: 'false' }
const temp = makeHome()
after(() => temp.remove())

test('kill -9 of every part at once: each comes back where it was', async () => {
  const instance = await startInstance({ home: temp.home, env: QUIET })
  await deploy(instance.client, programFiles('healthy'))
  const before = await pids(instance)
  for (const pid of before) process.kill(pid, 'SIGKILL')
  const isNew = async () => {
    const now = await pids(instance)
    return now.length === 3 && now.every((pid) => !before.includes(pid))
  }
  await until('three new processes', isNew, { ms: ENDED_MS, more: () => instance.process.stderr().slice(-3000) })
  const id = await until('an answer', () => patiently(() => trigger(instance.client, 'healthy', {})))
  assert.equal((await ended(instance.client, id)).status, 'completed')
  await instance.stop()
})

test('after kill -9 of the start itself its parts end, and the next start goes on with the same database', async () => {
  const killed = await startInstance({ home: temp.home, env: QUIET })
  // The test before has deployed it.
  const ids = await Promise.all(Array.from({ length: 2 }, () => trigger(killed.client, 'healthy', { takesMs: 1500 })))
  killed.process.child.kill('SIGKILL')
  await until(
    'the end of coordinator and agent',
    async () => !(await killed.pidOf('coordinator')) && !(await killed.pidOf('agent')),
  )
  await until('the end of their programs', () => processesMarked(join(temp.home, 'agent')).length === 0)
  const next = await startInstance({ home: temp.home, env: QUIET })
  assert.match(next.process.stderr(), /postgres\.(adopted|started)/)
  for (const id of ids) assert.equal((await ended(next.client, id)).status, 'completed')
  await next.stop()
})

test('a start right after kill -9 of the one before waits for what that left, and says so', async () => {
  const own = makeHome()
  try {
    const first = await startInstance({ home: own.home, env: QUIET })
    await deploy(first.client, programFiles('healthy'))
    // Its agent does not end before it.
    const run = await trigger(first.client, 'healthy', { takesMs: 8000 })
    const status = async () => (await first.client.runs.get({ run })).run.status
    await until('the program to run', async () => (await status()) === 'running')
    const [coordinator, agent] = await pids(first)
    first.process.child.kill('SIGKILL')
    const env = { ...QUIET, WINDLASS_PORT: new URL(first.access.url).port }
    const next = await startInstance({ home: own.home, env })
    assert.equal(next.access.url, first.access.url)
    const which = `(coordinator \\(process ${coordinator}\\), )?agent \\(process ${agent}\\)`
    assert.match(next.process.stderr(), new RegExp(`Waiting up to 30 s for what it left to end: ${which}\\.`))
    assert.doesNotMatch(next.process.stderr(), /Starting it again/)
    assert.equal((await ended(next.client, run)).status, 'completed')
    await next.stop()
  } finally {
    own.remove()
  }
})

async function pids(instance: Instance): Promise<number[]> {
  const found = await Promise.all((['coordinator', 'agent', 'postgres'] as const).map((part) => instance.pidOf(part)))
  return found.filter((pid) => pid !== undefined)
}

test('a signal to npm stops all of it', async () => {
  const own = makeHome()
  const env = { ...process.env, ...QUIET, WINDLASS_PORT: '0', WINDLASS_HOME: own.home }
  const npm = spawn('npm', ['start'], { cwd: PROJECT, env, stdio: ['ignore', 'pipe', 'ignore'] })
  try {
    let said = ''
    npm.stdout.setEncoding('utf8').on('data', (text: string) => (said += text))
    await until('it to be up', () => /http:\/\/127/.test(said), { ms: ENDED_MS, more: () => said })
    npm.kill('SIGTERM')
    await until('npm to end', () => npm.exitCode !== null || npm.signalCode !== null, { ms: ENDED_MS })
    await nothingIsLeft(own.home)
  } finally {
    npm.kill('SIGKILL')
    own.remove()
  }
})

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
