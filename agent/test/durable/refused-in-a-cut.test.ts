import assert from 'node:assert/strict'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { aBundle } from '../_kit/bundle.ts'
import { withAgent } from '../_kit/with-agent.ts'

const PROGRAM = `
import { workflows } from 'windlass'
export async function run() {
  void workflows.call('nobody')
  return 'done'
}`

withAgent('a refusal that a cut has held back fails the run, though its program has returned', async ({ fake }) => {
  fake.mute.add('ack')
  const placement = fake.offer(await aBundle({ 'main.mjs': PROGRAM }))
  await until('the call is told', () => placement.entries.some(([kind]) => kind === 'j'))
  const error = { name: 'CallRefusedError', code: 'CALL_REFUSED', message: 'There is no workflow nobody.', detail: {} }
  const completions = [{ n: 1, state: 'failed' as const, result: JSON.stringify(error) }]
  const { run, epoch } = placement.offer
  fake.beforeWelcome = [{ t: 'wake', runs: [{ run, epoch, completions }] }]
  fake.mute.delete('ack')
  fake.cut()
  const ending = await fake.ending(placement)
  assert.ok(ending.how === 'threw', JSON.stringify(ending))
  assert.equal(ending.error.code, 'CALL_REFUSED')
})
