// A stop has one grace, also where somebody cancels a run meanwhile.
import assert from 'node:assert/strict'
import test from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { AgentRun } from '../../run/agent-run.ts'
import type { RunningProgram, StopOrder } from '../../run/program/program.ts'

/** What its program was told, of a run that may take this long to stop. */
function aRun(graceMs: number) {
  const orders: StopOrder[] = []
  const run = newId('run')
  const agentRun = new AgentRun({ run, epoch: 1, graceMs } as AgentRun['offer'], 60_000)
  agentRun.answer('ours')
  const program = { cancel: (order: StopOrder) => void orders.push(order), news: () => [] }
  agentRun.attach(program as unknown as RunningProgram)
  const cancel = (ms: number) => agentRun.cancel({ run, epoch: 1, why: 'cancelled', reason: '', graceMs: ms })
  return { agentRun, cancel, last: () => orders.at(-1) }
}

test('a run that is cancelled while it is handed over has what is left of that grace', () => {
  const { agentRun, cancel, last } = aRun(10_000)
  agentRun.handOver(Infinity)
  assert.deepEqual([last()?.why, last()?.graceMs], ['handover', 10_000])
  cancel(60_000)
  const { why, graceMs = Infinity } = last()!
  assert.ok(why === 'cancelled' && graceMs <= 10_000 && graceMs >= 3000, `it has ${graceMs} ms`)
})

test('it has three seconds in any case, and never more than a cancel gives', () => {
  for (const [ofCancel, expected] of [
    [60_000, 3000],
    [2000, 2000],
  ] as const) {
    const { agentRun, cancel, last } = aRun(60_000)
    agentRun.handOver(1)
    cancel(ofCancel)
    assert.deepEqual([last()?.why, last()?.graceMs], ['cancelled', expected])
  }
})

test('one that is cancelled while its agent works on has its whole grace', () => {
  const { cancel, last } = aRun(10)
  cancel(60_000)
  assert.equal(last()?.graceMs, 60_000)
})
