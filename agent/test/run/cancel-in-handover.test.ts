// A stop has one grace, also where somebody cancels a run meanwhile.
import assert from 'node:assert/strict'
import test from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { AgentRun } from '../../run/agent-run.ts'
import type { RunningProgram, StopOrder } from '../../run/program/program.ts'

/** What its program was told, of a run that may take this long to stop. */
function aRun(graceMs: number) {
  const run = notHereYet(graceMs)
  run.attach()
  return run
}

/** The same, of a program that its agent has yet to find. */
function notHereYet(graceMs: number) {
  const orders: StopOrder[] = []
  const kills: string[] = []
  const run = newId('run')
  const agentRun = new AgentRun({ run, epoch: 1, graceMs } as AgentRun['offer'], 60_000)
  agentRun.answer('ours')
  agentRun.isTakenBack = true
  const program = {
    cancel: (order: StopOrder) => void orders.push(order),
    kill: (why: string) => void kills.push(why),
    news: () => [],
  }
  const attach = () => agentRun.attach(program as unknown as RunningProgram)
  const cancel = (ms: number) => agentRun.cancel({ run, epoch: 1, why: 'cancelled', reason: '', graceMs: ms })
  return { agentRun, attach, cancel, kills, last: () => orders.at(-1) }
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

test('one that is found while it is handed over has what is left of that grace, and holds its lease meanwhile', () => {
  const { agentRun, attach, kills, last } = notHereYet(10_000)
  agentRun.handOver(Infinity)
  for (const began = performance.now(); performance.now() < began + 2;);
  assert.ok(agentRun.isHeld)
  attach()
  const { why, graceMs = Infinity } = last()!
  assert.ok(why === 'handover' && graceMs > 0 && graceMs < 10_000, `it has ${graceMs} ms`)
  assert.deepEqual(kills, [])
})

test('so has one that is cancelled before it is found, and three seconds in any case', () => {
  const early = notHereYet(10_000)
  early.agentRun.handOver(Infinity)
  early.cancel(60_000)
  const late = notHereYet(60_000)
  late.agentRun.handOver(1)
  late.cancel(60_000)
  for (const [{ attach, last }, mostMs] of [
    [early, 10_000],
    [late, 3_000],
  ] as const) {
    attach()
    const { why, graceMs = Infinity } = last()!
    assert.ok(why === 'cancelled' && graceMs >= 3_000 && graceMs <= mostMs, `it has ${graceMs} ms`)
  }
})

test('one that is found when that is over is killed, as is one whose agent is stopped at once', () => {
  const late = notHereYet(10_000)
  late.agentRun.handOver(0)
  const hurried = notHereYet(10_000)
  hurried.agentRun.handOver(Infinity)
  hurried.agentRun.end('shutdown')
  for (const { attach, kills, last } of [late, hurried]) {
    attach()
    assert.deepEqual([last(), kills], [undefined, ['shutdown']])
  }
})

test('the grace of a cancel counts from the cancel on, also where the program is found later', () => {
  const { attach, cancel, last } = notHereYet(60_000)
  cancel(60_000)
  for (const began = performance.now(); performance.now() < began + 2;);
  attach()
  const { why, graceMs = Infinity } = last()!
  assert.ok(why === 'cancelled' && graceMs >= 3_000 && graceMs < 60_000, `it has ${graceMs} ms`)
})
