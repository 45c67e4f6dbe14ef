import assert from 'node:assert/strict'
import test from 'node:test'
import type { ProgramMessage, StartMessage } from '@windlass/shared/wire/program.ts'
import type { HostProcess } from '../../../run/hosts/host-process.ts'
import { NO_JOURNAL } from '../../../run/program/recorded-journal.ts'
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
    const steering = new Steering({ disarm: () => {} }, true, 1_000)
    steering.enter(host as unknown as HostProcess)
    steering.step({ t: 'asked', message: { why, reason: '', graceMs: 1000 } })
    t.mock.timers.tick(999)
    assert.equal(asked.mock.callCount(), isAsked ? 1 : 0)
    t.mock.timers.tick(1)
    steering.disarm()
  })

test('of what was said before the program has begun, a process is told the newest, and one after it nothing', () => {
  const steering = new Steering({ disarm: () => {} }, false, 1_000)
  const heard: string[] = []
  const host = { send: ({ t, ...rest }: ProgramMessage) => void heard.push([t, ...Object.values(rest)].join(' ')) }
  steering.inform({ t: 'token', token: 'old' })
  steering.inform({ t: 'token', token: 'new' })
  steering.tell({ t: 'wake', completions: [] })
  for (let count = 1; count <= 3; count++) steering.inform({ t: 'kept', count })
  steering.enter(host as unknown as HostProcess)
  steering.start({ t: 'start' } as StartMessage, NO_JOURNAL)
  assert.deepEqual(heard.splice(0), ['start', 'token new', 'wake ', 'kept 3'])
  steering.step({ t: 'begun' })
  steering.start({ t: 'start' } as StartMessage, NO_JOURNAL)
  assert.deepEqual(heard, ['start'])
})
