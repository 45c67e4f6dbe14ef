import assert from 'node:assert/strict'
import test from 'node:test'
import type { HostProcess } from '../../../run/hosts/host-process.ts'
import { Steering } from '../../../run/program/steering.ts'

for (const [why, isAsked] of [
  ['cancelled', true],
  ['timed-out', true],
  // The run goes on: that a process of its own ended would look like a failure of the program.
  ['handover', false],
] as const)
  test(`what a program has started is ${isAsked ? '' : 'not '}asked to end at half of the grace: ${why}`, (t) => {
    t.mock.timers.enable({ apis: ['setTimeout'] })
    const asked = t.mock.fn()
    const host = { pid: 7, enclosure: { askOthers: asked }, send: () => {}, kill: () => {} }
    const steering = new Steering({ disarm: () => {} }, true)
    steering.enter(host as unknown as HostProcess)
    steering.step({ t: 'asked', message: { why, reason: '', graceMs: 1000 } })
    t.mock.timers.tick(999)
    assert.equal(asked.mock.callCount(), isAsked ? 1 : 0)
    t.mock.timers.tick(1)
    steering.disarm()
  })
