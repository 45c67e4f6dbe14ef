// A program that was taken back hears what any other does when its next agent is stopped as well.
import assert from 'node:assert/strict'
import { after, test, type TestContext } from 'node:test'
import type { ServerResponse } from 'node:http'
import { LOST_REASONS } from '@windlass/shared/model/lost-reasons.ts'
import { DEADLINE_MS, moment, until } from '@windlass/shared/test/_kit/until.ts'
import { within } from '@windlass/shared/time.ts'
import { endAgentProcesses } from '../_kit/an-agent.ts'
import { linesOf } from '../_kit/fake-coordinator.ts'
import { abandoned } from './abandoned.ts'

const TELLS = `
  console.log(String(process.pid))
  const timer = setInterval(() => {}, 1000)
  await new Promise((resolve) => given.signal.addEventListener('abort', resolve))
  console.log(given.signal.reason.name)
  clearInterval(timer)`

after(endAgentProcesses)

test('it is told that its agent is stopped, and has not ended its run', async (t) => {
  const { fake, placement, takeOver } = await abandoned(t, TELLS, { graceMs: 600_000 })
  const { lines, stop } = await takeOver({ WINDLASS_AGENT_STOP_MS: '600000' })
  await until('it goes on', () => lines.some(({ name }) => name === 'run.taken-back'))
  stop()
  stop()
  assert.deepEqual(await fake.ending(placement), { how: 'lost', reason: LOST_REASONS.shutdown })
  assert.deepEqual(linesOf(placement).slice(1), ['AgentStoppedError'])
})

test('signals that come while its agent is starting count each', async (t) => {
  const offered = { graceMs: 600_000, env: { WINDLASS_AGENT_STOP_MS: '600000' } }
  const { fake, placement, takeOverApart } = await abandoned(t, TELLS, offered)
  // Logged on the way.
  const agent = await takeOverApart('isolation.weak')
  for (const times of [1, 2]) {
    agent.child.kill('SIGTERM')
    await until(`stop ${times}`, () => agent.output().includes(`"times":${times}`))
  }
  assert.deepEqual(await fake.ending(placement), { how: 'lost', reason: LOST_REASONS.shutdown })
  assert.deepEqual(linesOf(placement).slice(1), ['AgentStoppedError'])
})

/** The next agent cannot go on with it, as the coordinator is away, and is stopped twice. */
async function stoppedWhileAway(t: TestContext, graceMs: number) {
  const scene = await abandoned(t, TELLS, { graceMs }, ({ fake }) => fake.mute.add('hello'))
  const agent = await scene.takeOver({ WINDLASS_AGENT_STOP_MS: '600000' })
  agent.stop()
  agent.stop()
  const said = (name: string) => until(name, () => agent.lines.find((line) => line.name === name))
  await said('agent.waiting')
  return { ...scene, agent, said }
}

test('it has its grace from the second signal on where its agent could not go on with it before', async (t) => {
  const { fake, placement, agent } = await stoppedWhileAway(t, 600_000)
  const hellos = fake.heard('hello').length
  fake.cut()
  await until('another try', () => fake.heard('hello').length > hellos)
  assert.ok(!agent.lines.some(({ name }) => name === 'run.not-taken-back'))
  fake.mute.delete('hello')
  fake.cut()
  assert.deepEqual(await fake.ending(placement), { how: 'lost', reason: LOST_REASONS.shutdown })
  assert.deepEqual(linesOf(placement).slice(1), ['AgentStoppedError'])
})

test('it is killed when that grace is over', async (t) => {
  const { said } = await stoppedWhileAway(t, 1)
  await said('run.not-taken-back')
})

test('it is killed at once by a third signal', async (t) => {
  const { agent, said } = await stoppedWhileAway(t, 600_000)
  agent.stop()
  await said('run.not-taken-back')
  await within(DEADLINE_MS, agent.done, 'the agent stays')
})

test('one that is cancelled meanwhile is cancelled, also where it is never found', async (t) => {
  const scene = await abandoned(t, TELLS, { graceMs: 600_000, secrets: { KEY: 'correct horse battery staple' } })
  const { fake, placement, takeOver, connected } = scene
  const asked = Promise.withResolvers<ServerResponse>()
  fake.secrets = asked.resolve
  const { stop } = await takeOver({ WINDLASS_AGENT_STOP_MS: '600000' })
  await asked.promise
  await connected()
  stop()
  stop()
  await until('it has heard the stop', () => fake.heard('leave').length > 0)
  const { run, epoch } = placement.offer
  const obeyed = moment('frame.obeyed', ({ type }) => type === 'cancel')
  fake.send({ t: 'cancel', runs: [{ run, epoch, why: 'cancelled', reason: 'typo', graceMs: 100 }] })
  await obeyed
  assert.deepEqual(await fake.ending(placement), { how: 'cancelled', forced: true })
})
