import assert from 'node:assert/strict'
import { once } from 'node:events'
import { readFile, rename, stat } from 'node:fs/promises'
import { type AddressInfo, createServer } from 'node:net'
import path from 'node:path'
import { test } from 'node:test'
import { until, untilPolled } from '@windlass/shared/test/_kit/until.ts'
import { AgentStatus, STATUS_FILE } from '../../status/status.ts'
import { aFolder, anAgent } from '../_kit/an-agent.ts'
import type { Logged } from '../_kit/an-agent.ts'
import { aProgram } from '../_kit/bundle.ts'
import { aParked } from '../_kit/durable.ts'
import { FakeCoordinator, linesOf } from '../_kit/fake-coordinator.ts'
import { withAgent } from '../_kit/with-agent.ts'

const HEALTH = { env: { WINDLASS_AGENT_HEALTH: '127.0.0.1:0' } }
const FOREVER = `setInterval(() => {}, 1e9); console.log(1); await new Promise(() => {})`

interface Problems {
  status: string
  problems: { check: string; message: string }[]
}

function urlOf({ lines }: Logged): string {
  return String(lines.find(({ name }) => name === 'health.listens')?.url)
}

async function readiness(agent: Logged): Promise<Problems & { code: number }> {
  const answer = await fetch(`${urlOf(agent)}/readyz`)
  return { code: answer.status, ...((await answer.json()) as Problems) }
}

function whenReady(agent: Logged, isIt: (found: Problems & { code: number }) => boolean) {
  return until('the answer', async () => {
    const found = await readiness(agent)
    return isIt(found) && found
  })
}

async function statusOf(folder: string): Promise<AgentStatus | undefined> {
  try {
    return AgentStatus.parse(JSON.parse(await readFile(path.join(folder, STATUS_FILE), 'utf8')))
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

function whenStatus(folder: string, isIt: (found: AgentStatus) => boolean): Promise<AgentStatus> {
  return until('the status', async () => {
    const found = await statusOf(folder)
    return found && isIt(found) && found
  })
}

withAgent(
  'an agent that is connected and asks for work is ready, and one that is cordoned says why it is not',
  async ({ fake, agent }) => {
    await whenReady(agent, ({ code }) => code === 200)
    fake.send({ t: 'intake', intake: { state: 'cordoned', epoch: 1, reason: 'new disks', deadlineAt: null } })
    const { code, problems } = await whenReady(agent, ({ problems }) => problems.length > 0)
    assert.equal(code, 503)
    assert.deepEqual(problems, [{ check: 'intake', message: 'it is cordoned: new disks' }])
    assert.equal((await fetch(`${urlOf(agent)}/livez`)).status, 200)
  },
  HEALTH,
)

withAgent(
  'what is wrong on the host, and a lost connection, make it unready',
  async ({ fake, agent, folder }) => {
    await whenReady(agent, ({ code }) => code === 200)
    await rename(path.join(folder, 'bundles'), path.join(folder, 'away'))
    const { problems } = await whenReady(agent, ({ problems }) => problems.length > 0)
    assert.equal(problems[0]?.check, 'bundles')
    await rename(path.join(folder, 'away'), path.join(folder, 'bundles'))
    await whenReady(agent, ({ code }) => code === 200)
    fake.mute.add('hello')
    fake.cut()
    await whenReady(agent, ({ problems }) => problems.some(({ check }) => check === 'connection'))
    fake.mute.delete('hello')
  },
  HEALTH,
)

withAgent(
  'Prometheus finds what the agent does',
  async ({ fake, agent }) => {
    await fake.ending(fake.offer(await aProgram(`return 1`)))
    const running = fake.offer(await aProgram(FOREVER))
    await until('it runs', () => linesOf(running).length > 0)
    await aParked(fake)
    await until('parked', () => fake.heard('heartbeat').length > 2)
    const answer = await fetch(`${urlOf(agent)}/metrics`)
    const text = await answer.text()
    assert.match(answer.headers.get('content-type') ?? '', /text\/plain/)
    for (const line of [
      'windlass_agent_connected 1',
      'windlass_agent_slots 4',
      'windlass_agent_runs{state="executing"} 1',
      'windlass_agent_runs{state="parked"} 1',
      'windlass_agent_claims_total 3',
      'windlass_agent_endings_total{how="returned"} 1',
      'windlass_agent_start_seconds_count 3',
      'windlass_agent_connects_total 1',
    ])
      assert.ok(text.split('\n').includes(line), `${line} is not in\n${text}`)
    assert.match(text, /windlass_agent_heartbeats_total [1-9]/)
    assert.match(text, /windlass_agent_bundle_cache_bytes [1-9]/)
  },
  HEALTH,
)

withAgent(
  'other paths and methods are told what there is',
  async ({ agent }) => {
    const absent = await fetch(`${urlOf(agent)}/constructor`)
    assert.equal(absent.status, 404)
    assert.match(await absent.text(), /\/livez, \/readyz, \/metrics/)
    const posted = await fetch(`${urlOf(agent)}/readyz`, { method: 'POST' })
    assert.deepEqual([posted.status, posted.headers.get('allow')], [405, 'GET, HEAD'])
  },
  HEALTH,
)

test('an agent whose address is taken works, says so, and answers there once it is free', async () => {
  const fake = await FakeCoordinator.start()
  const { folder, remove } = await aFolder()
  const other = createServer().listen(0, '127.0.0.1')
  await once(other, 'listening')
  const address = `127.0.0.1:${(other.address() as AddressInfo).port}`
  const agent = await anAgent(fake.url, folder, { WINDLASS_AGENT_HEALTH: address })
  try {
    const said = agent.lines.find(({ name }) => name === 'health.taken')
    assert.equal(said?.address, address)
    assert.match(String(said?.advice), /WINDLASS_AGENT_HEALTH/)
    other.close()
    const { url } = await untilPolled('it listens', () => agent.lines.find(({ name }) => name === 'health.listens'))
    assert.equal((await fetch(`${String(url)}/livez`)).status, 200)
  } finally {
    agent.stop()
    await agent.done
    await fake.close()
    await remove()
  }
})

withAgent('the status file says what the agent is about, and follows it', async ({ fake, folder, agent }) => {
  const parked = await aParked(fake)
  const found = await whenStatus(folder, ({ runs }) => runs.length === 1 && runs[0]!.isParked)
  assert.equal(found.pid, process.pid)
  assert.equal(found.runner, agent.runner)
  assert.deepEqual(found.connection.state, 'connected')
  assert.equal(found.runs[0]?.run, parked.offer.run)
  assert.deepEqual(found.slots, { total: 4, free: 4 })
  assert.deepEqual(
    found.settings.find(({ name }) => name === 'WINDLASS_AGENT_SLOTS'),
    {
      name: 'WINDLASS_AGENT_SLOTS',
      value: 4,
      origin: 'environment',
    },
  )
  assert.doesNotMatch(JSON.stringify(found), /wlr_good/)
  assert.equal((await stat(path.join(folder, STATUS_FILE))).mode & 0o777, 0o600)
  fake.send({ t: 'intake', intake: { state: 'draining', epoch: 3, reason: 'moving', deadlineAt: 12 } })
  const draining = await whenStatus(folder, ({ intake }) => intake.state === 'draining')
  assert.deepEqual(draining.intake, { state: 'draining', epoch: 3, reason: 'moving', deadlineAt: 12, isLeaving: false })
})

test('the last word in the status file is that the agent has stopped', async () => {
  const fake = await FakeCoordinator.start()
  const { folder, remove } = await aFolder()
  const agent = await anAgent(fake.url, folder)
  await agent.connected
  agent.stop()
  await agent.done
  assert.equal((await statusOf(folder))?.state, 'stopped')
  await fake.close()
  await remove()
})
