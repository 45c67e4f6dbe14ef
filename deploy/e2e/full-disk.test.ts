// What `npm start` and an agent say when the disk of their folder is full, and how they get over it.
import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { appendFileSync, chmodSync, mkdtempSync, readFileSync, rmSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { test, type TestContext } from 'node:test'
import { createClient } from 'windlass/client'
import { fillDisk } from '@windlass/shared/test/_kit/fill-disk.ts'
import { testDatabase } from '@windlass/coordinator/test/_kit/database.ts'
import { endLeftovers, processesMarked } from '../tools/leftovers.ts'
import { deploy, ended, programFiles, trigger } from './_kit/runs.ts'
import { ENDED_MS, watchAgent, watchPlainStart, watchStart, type Watched } from './_kit/start-process.ts'
import { until } from './_kit/until.ts'

/** A folder on a file system of its own. Undefined where none can be made; the test is skipped. */
function aDisk(t: TestContext, size: string): string | undefined {
  const folder = mkdtempSync(join(tmpdir(), 'windlass-full-'))
  const mounted = spawnSync('mount', ['-t', 'tmpfs', '-o', `size=${size}`, 'tmpfs', folder], { encoding: 'utf8' })
  if (mounted.status !== 0) {
    remove(folder)
    t.skip(`no file system can be mounted here: ${mounted.error?.message ?? mounted.stderr.trim()}`)
    return undefined
  }
  chmodSync(folder, 0o755)
  return folder
}

function remove(folder: string): void {
  spawnSync('umount', [folder])
  rmSync(folder, { recursive: true, force: true })
}

function aFullDisk(t: TestContext): string | undefined {
  const folder = aDisk(t, '256k')
  if (folder === undefined) return undefined
  t.after(() => remove(folder))
  fillDisk(join(folder, 'full'))
  return folder
}

async function saysSo(started: Watched, folder: string, setting: string): Promise<number | string> {
  const code = await started.ended()
  const errors = started.stderr()
  assert.match(errors, new RegExp(`The disk of ${folder}/home is full.*Make room.*${setting}`))
  assert.doesNotMatch(errors, /\n? {4}at |node:internal|Starting it again/)
  return code
}

test('`npm start` names the folder and what to do, with a database of its own and with another one', async (t) => {
  const folder = aFullDisk(t)
  if (folder === undefined) return
  const other: Record<string, string> = { WINDLASS_DATABASE_URL: 'postgres://nobody@127.0.0.1:9/none' }
  for (const more of [{}, other]) {
    const env: Record<string, string> = { WINDLASS_PORT: '0', WINDLASS_HOME: join(folder, 'home'), ...more }
    assert.equal(await saysSo(watchStart({ env }), folder, 'WINDLASS_HOME'), 1)
  }
})

test('an agent names its folder and what to do, and has not used up its token', async (t) => {
  const folder = aFullDisk(t)
  if (folder === undefined) return
  const env = {
    WINDLASS_URL: 'http://127.0.0.1:9',
    WINDLASS_AGENT_TOKEN: 'wlt_none',
    WINDLASS_AGENT_HOME: join(folder, 'home'),
    WINDLASS_AGENT_CONFIG: 'none',
  }
  assert.equal(await saysSo(watchAgent({ env }), folder, 'WINDLASS_AGENT_HOME'), 70)
})

/** `npm start` on a small disk of its own, with its database elsewhere. */
async function aStart(t: TestContext, folder: string) {
  const home = join(folder, 'home')
  const database = await testDatabase()
  const started = watchPlainStart({
    env: {
      WINDLASS_HOME: home,
      WINDLASS_PORT: '0',
      WINDLASS_DATABASE_URL: database.url,
      WINDLASS_START_EXAMPLE: 'false',
      WINDLASS_AGENT_HEALTH: '127.0.0.1:0',
    },
  })
  t.after(async () => {
    started.child.kill('SIGTERM')
    await started.ended().catch(() => undefined)
    endLeftovers(processesMarked(home))
    await database.close()
    remove(folder)
  })
  await started.prints('Up in', ENDED_MS)
  const [, url = '', apiKey = ''] = /address +(\S+)[^]*API key +(\S+)/.exec(started.stdout()) ?? []
  const logOf = (part: 'coordinator' | 'agent') => readFileSync(join(home, `logs/${part}.log`), 'utf8')
  const health = /"name":"health.listens".*"url":"([^"]+)"/.exec(logOf('agent'))?.[1]
  return { home, started, url, client: createClient({ url, apiKey, org: 'default' }), logOf, health }
}

/** The last block of a file has room for some lines on a full disk. */
function fillPage(file: string): void {
  assert.throws(() => appendFileSync(file, '\n'.repeat(8192)), { code: 'ENOSPC' })
}

/** Lines that a process could not write, by its metrics. */
async function droppedAt(url: string): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  return Number(/^windlass_(?:agent_)?log_lines_dropped_total (\d+)$/m.exec(text)?.[1])
}

const partOf = (home: string, part: string) =>
  processesMarked(home).find(({ command }) => command.includes(`${part}/main.ts`))?.pid

test('a disk that fills up ends neither coordinator nor agent, and their logs tell what is missing', async (t) => {
  const folder = aDisk(t, '96m')
  if (folder === undefined) return
  const { home, started, url, client, logOf, health } = await aStart(t, folder)
  await deploy(client, programFiles('healthy'))
  const [coordinator, agent] = [partOf(home, 'coordinator'), partOf(home, 'agent')]
  fillDisk(join(folder, 'full'))
  for (const part of ['coordinator', 'agent']) fillPage(join(home, `logs/${part}.log`))
  await started.says(`The disk of ${home} is full`)
  await assert.rejects(deploy(client, programFiles('counts')), /The disk of the coordinator/)
  assert.ok((await droppedAt(url)) > 0)
  assert.equal(partOf(home, 'coordinator'), coordinator)
  process.kill(coordinator!, 'SIGKILL')
  await started.prints(`The coordinator ended (SIGKILL). Its log: ${home}/logs/coordinator.log The disk of `)
  await until('a coordinator on the full disk', () =>
    fetch(`${url}/readyz`).then(
      ({ ok }) => ok,
      () => false,
    ),
  )
  await until('lines of the agent about its way back', async () => (await droppedAt(health!)) > 0)
  assert.equal(partOf(home, 'agent'), agent)
  rmSync(join(folder, 'full'))
  await started.prints(`The disk of ${home} has room again`)
  const id = await trigger(client, 'healthy', { takesMs: 1 })
  assert.equal((await ended(client, id)).status, 'completed')
  process.kill(partOf(home, 'coordinator')!, 'SIGKILL')
  const note = /"log\.dropped".*"lines":\d+,"since":\d+,"reason":"ENOSPC/
  await until('the line that tells of it', () => note.test(logOf('agent')))
  assert.equal(partOf(home, 'agent'), agent)
})

test('an agent that is killed on a full disk comes back, and executes runs again when there is room', async (t) => {
  const folder = aDisk(t, '96m')
  if (folder === undefined) return
  const { home, started, client } = await aStart(t, folder)
  await deploy(client, programFiles('healthy'))
  const agent = partOf(home, 'agent')!
  fillDisk(join(folder, 'full'))
  process.kill(agent, 'SIGKILL')
  await started.prints(`The agent ended (SIGKILL). Its log: ${home}/logs/agent.log The disk of `)
  await until('the next agent', () => ![undefined, agent].includes(partOf(home, 'agent')))
  const from = Date.now()
  // It has started in the room that it holds ready.
  await until('its heartbeat', async () => {
    const { runners } = await client.runners.list({})
    return runners.some(({ lastHeartbeatAt }) => (lastHeartbeatAt ?? 0) > from)
  })
  assert.doesNotMatch(started.stdout(), /The agent ended \(exit code/)
  rmSync(join(folder, 'full'))
  const id = await trigger(client, 'healthy', { takesMs: 1 })
  assert.equal((await ended(client, id)).status, 'completed')
})
