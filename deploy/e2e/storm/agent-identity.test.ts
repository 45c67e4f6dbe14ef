// Who an agent is, over crashes, copies of its folder, and its end.
import assert from 'node:assert/strict'
import { cpSync, rmSync } from 'node:fs'
import { join } from 'node:path'
import { test } from 'node:test'
import { startAgent, type TestAgent } from '../_kit/agents.ts'
import { fileInstance } from '../_kit/file-instance.ts'
import { deploy, ended, get, hasSaid, programFiles, trigger, wholeLog } from '../_kit/runs.ts'
import { watchAgent } from '../_kit/start-process.ts'
import { until } from '../_kit/until.ts'

const { current } = fileInstance({ programs: [] })
const LISTENS = 'begun x'

/** A module that puts the clock of a process ten minutes ahead. */
const CLOCK_AHEAD = `data:text/javascript,${encodeURIComponent(`
  const Real = Date, AHEAD = 600_000
  globalThis.Date = class extends Real {
    constructor(...given) { given.length === 0 ? super(Real.now() + AHEAD) : super(...given) }
    static now() { return Real.now() + AHEAD }
  }`)}`

/** An agent in a pool of its own, and a run that it executes for a minute. */
async function executing(name: string): Promise<{ agent: TestAgent; run: string }> {
  const { client } = current()
  const agent = await startAgent(current(), { name, pool: name })
  await deploy(client, programFiles('listens', { slug: name, pool: name, timeout: '5m' }))
  const run = await trigger(client, name, { tag: 'x' })
  await hasSaid(client, run, 'log.stdout', LISTENS)
  return { agent, run }
}

const runnerOf = async (pool: string) => (await current().client.runners.list({ pool })).runners[0]!

test('a copy of the state folder is refused with a code of its own and reported, and the original goes on', async () => {
  const { client, home, access } = current()
  const { agent, run } = await executing('copied')
  const copy = join(home, 'copy')
  // The lock is the mark of a process that lives, and would be seen for what it is on this machine only. A draft may
  // have got its name before it is copied, and Node copies no named pipes.
  const filter = (file: string) => !/(agent\.lock|\.new|\/pipes)$/.test(file)
  cpSync(join(home, 'copied'), copy, { recursive: true, filter })
  const second = watchAgent({
    env: { WINDLASS_URL: access.url, WINDLASS_AGENT_HOME: copy, WINDLASS_AGENT_CONFIG: 'none' },
  })
  assert.equal(await second.ended(), 80, second.stderr())
  assert.match(second.stderr(), /copy or a backup/)
  rmSync(copy, { recursive: true })
  assert.ok((await runnerOf('copied')).copyRefusedAt)
  const { status, attempt } = await get(client, run)
  assert.deepEqual([status, attempt], ['running', 1])
  await client.runs.cancel({ run })
  assert.equal((await ended(client, run)).status, 'cancelled')
  await agent.stop()
})

test('an agent that is killed and started again at once is welcomed at once, and its run begins anew', async () => {
  const { client } = current()
  const { agent, run } = await executing('killed')
  await agent.kill()
  await agent.start()
  await until('the second attempt', async () => (await get(client, run)).attempt === 2, { ms: 30_000 })
  assert.equal((await runnerOf('killed')).copyRefusedAt, null)
  await client.runs.cancel({ run })
  await ended(client, run)
  await agent.stop()
})

test('an agent that is revoked ends within seconds with a code of its own, and its run is free at once', async () => {
  const { client } = current()
  const { agent, run } = await executing('revoked')
  const { id } = await runnerOf('revoked')
  await client.runners.revoke({ runner: id, reason: 'stolen' })
  assert.equal(await agent.process().ended(), 79, agent.process().stderr())
  // Its lease would run out after 75 s.
  const { status, attempt } = await until(
    'the run to be free',
    async () => {
      const found = await get(client, run)
      return found.attempt === 2 && found
    },
    { ms: 10_000 },
  )
  assert.deepEqual([status, attempt], ['queued', 2])
  await client.runs.cancel({ run })
  const again = watchAgent({ env: { ...agentEnv('revoked'), WINDLASS_AGENT_CONFIG: 'none' } })
  assert.equal(await again.ended(), 79, 'it hears the same whenever it is started')
})

test('an agent whose clock is ten minutes off registers, works, and tells times by the clock of the coordinator', async () => {
  const { client } = current()
  const agent = await startAgent(current(), { name: 'fast', pool: 'fast', nodeArgs: ['--import', CLOCK_AHEAD] })
  await agent.process().says('clock.corrected')
  await deploy(client, programFiles('healthy', { slug: 'fast', pool: 'fast' }))
  const run = await trigger(client, 'fast', {})
  assert.equal((await ended(client, run)).status, 'completed')
  for (const { type, at } of await wholeLog(client, run))
    assert.ok(Math.abs(at - Date.now()) < 5 * 60_000, `${type} at ${at}`)
  await agent.stop()
})

function agentEnv(name: string): Record<string, string> {
  return { WINDLASS_URL: current().access.url, WINDLASS_AGENT_HOME: join(current().home, name) }
}
