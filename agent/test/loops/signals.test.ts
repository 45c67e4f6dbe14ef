import assert from 'node:assert/strict'
import { once } from 'node:events'
import { test } from 'node:test'
import { isGone } from '@windlass/shared/test/_kit/processes.ts'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { aFolder, anAgentProcess, endAgentProcesses } from '../_kit/an-agent.ts'
import type { AgentProcess } from '../_kit/an-agent.ts'
import { aProgram } from '../_kit/bundle.ts'
import { wake } from '../_kit/durable.ts'
import { FakeCoordinator, linesOf } from '../_kit/fake-coordinator.ts'
import type { FakePlacement } from '../_kit/fake-coordinator.ts'
import { aHandMade } from '../_kit/hand-made.ts'

interface Setting {
  fake: FakeCoordinator
  agent: AgentProcess
  /** A program that has said its first line, which is its pid. */
  begun: (source: string) => Promise<{ placement: FakePlacement; pid: number }>
}

function withAgentProcess(name: string, body: (setting: Setting) => Promise<void>): void {
  test(name, async () => {
    const fake = await FakeCoordinator.start()
    const { folder, remove } = await aFolder()
    const agent = await anAgentProcess(fake.url, folder, { WINDLASS_AGENT_STOP_MS: '600000' })
    const begun = async (source: string) => {
      const placement = fake.offer(await aProgram(`console.log(process.pid); ${source}`), { graceMs: 60_000 })
      await until('its first line', () => linesOf(placement).length > 0)
      return { placement, pid: Number(linesOf(placement)[0]) }
    }
    try {
      await body({ fake, agent, begun })
    } finally {
      await endAgentProcesses()
      await fake.close()
      await remove()
    }
  })
}

const FOREVER = `await new Promise((resolve) => setInterval(resolve, 1e9))`
const CLOSES = `setInterval(() => {}, 1e9); await new Promise((resolve) => given.signal.addEventListener('abort', resolve)); console.log('closed'); throw given.signal.reason`
const STOPPED = { how: 'lost', reason: 'the agent was stopped' }

withAgentProcess('the first signal lets programs finish, and says what is waited for', async ({ fake, agent }) => {
  const placement = fake.offer(await aHandMade(`say('works'); await message('wake'); done('done')`))
  await until('it works', () => linesOf(placement).length > 0)
  const exited = once(agent.child, 'exit')
  agent.child.kill('SIGTERM')
  const [leave] = await until('it says that it leaves', () => fake.heard('leave').length > 0 && fake.heard('leave'))
  assert.ok(leave && leave.deadlineMs > 500_000)
  await until('the log says it', () => /agent\.waiting.*third one kills/.test(agent.output()))
  assert.match(agent.output(), new RegExp(`agent.waiting.*${placement.offer.run}`))
  assert.ok(fake.heard('heartbeat').length > 0)
  const beats = fake.heard('heartbeat').length
  await until('it renews its leases while it waits', () => fake.heard('heartbeat').length > beats)
  wake(fake, placement, 1)
  assert.deepEqual(await fake.ending(placement), { how: 'returned', outputText: '"done"' })
  assert.deepEqual((await exited)[0], 0)
})

withAgentProcess('after the first signal nothing more is taken', async ({ fake, agent, begun }) => {
  await begun(FOREVER)
  agent.child.kill('SIGTERM')
  await until('it leaves', () => fake.heard('leave').length > 0)
  // What is offered before could still be given out by the poll that is open.
  await until('the poll is gone', () => fake.polling() === 0)
  fake.offer(await aProgram(`return 1`))
  const beats = fake.heard('heartbeat').length
  await until('three heartbeats', () => fake.heard('heartbeat').length >= beats + 3)
  assert.equal(fake.waiting(), 1)
})

withAgentProcess('a connection that is cut while it leaves hears of it again', async ({ fake, agent, begun }) => {
  await begun(FOREVER)
  agent.child.kill('SIGTERM')
  await until('it leaves', () => fake.heard('leave').length === 1)
  fake.cut()
  await until('it says so again', () => fake.heard('leave').length === 2)
})

withAgentProcess(
  'the second signal asks programs to stop, which then belong to others',
  async ({ fake, agent, begun }) => {
    const tidy = await begun(CLOSES)
    agent.child.kill('SIGTERM')
    await until('it leaves', () => fake.heard('leave').length > 0)
    assert.equal(await agent.kill('SIGTERM'), 0)
    assert.deepEqual(await fake.ending(tidy.placement), STOPPED)
    assert.ok(linesOf(tidy.placement).includes('closed'), 'it had its grace')
  },
)

withAgentProcess('the third signal kills what does not heed the second', async ({ fake, agent, begun }) => {
  const { placement, pid } = await begun(FOREVER)
  for (const times of [1, 2]) {
    agent.child.kill('SIGINT')
    await until(`signal ${times}`, () => agent.output().includes(`"times":${times}`))
  }
  assert.equal(isGone(pid), false)
  assert.equal(await agent.kill('SIGINT'), 0)
  assert.ok(isGone(pid))
  assert.deepEqual(await fake.ending(placement), STOPPED)
})
