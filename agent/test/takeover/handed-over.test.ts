// A program that was taken back hears what any other does when its next agent is stopped as well.
import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { LOST_REASONS } from '@windlass/shared/model/lost-reasons.ts'
import { until } from '@windlass/shared/test/_kit/until.ts'
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
