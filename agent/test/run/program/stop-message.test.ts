import assert from 'node:assert/strict'
import test from 'node:test'
import { endingOf } from '../../../run/program/host-endings.ts'
import { rejoinIn } from '../../../run/program/reports.ts'
import { stopMessage } from '../../../run/program/start-message.ts'

const ORDER = { why: 'handover', reason: 'stop', graceMs: 100 } as const
const REPORT = { first: 0, next: 1, heard: 0, variables: {} }

const heard = (report: object) => rejoinIn({ name: 'rejoin', at: 0, payload: Buffer.from(JSON.stringify(report)) })

test('a program that was taken back is told of a handover where its runtime knows it', () => {
  assert.equal(stopMessage(ORDER, undefined).why, 'handover')
  assert.equal(stopMessage(ORDER, heard({ ...REPORT, handsOver: true })).why, 'handover')
  for (const older of [REPORT, { ...REPORT, handsOver: 'yes' }]) {
    assert.deepEqual(stopMessage(ORDER, heard(older)), { ...ORDER, why: 'cancelled' })
  }
  assert.equal(stopMessage({ ...ORDER, why: 'timed-out' }, heard(REPORT)).why, 'timed-out')
})

test('of a program that goes elsewhere only what it returns is its end', () => {
  const facts = {
    isForced: false,
    isOutOfTime: false,
    hasStarted: true,
    wasTaken: false,
    timeoutMs: 1,
    enclosure: undefined,
  }
  const after = (outcome: Parameters<typeof endingOf>[1]['outcome']) =>
    endingOf({ exitCode: 0, signal: null }, { ...facts, stop: { why: 'handover' }, outcome }).how
  assert.equal(after({ how: 'returned', outputText: '1' }), 'returned')
  assert.equal(after({ how: 'threw', error: { name: 'Error', message: 'no' } }), 'lost')
  assert.equal(after({ how: 'blocked', mismatch: { expected: '', received: '', at: '' } }), 'lost')
  assert.equal(after(undefined), 'lost')
})

test('of a program whose time was over that is its end, whoever gave it up after that', () => {
  const facts = {
    isForced: true,
    isOutOfTime: true,
    hasStarted: true,
    wasTaken: false,
    timeoutMs: 1,
    enclosure: undefined,
  }
  const outcome = { how: 'returned', outputText: '1' } as const
  for (const why of ['timed-out', 'lost'] as const)
    for (const said of [undefined, outcome]) {
      const ending = endingOf(
        { exitCode: null, signal: 'SIGKILL' },
        { ...facts, stop: { why, reason: '' }, outcome: said },
      )
      assert.deepEqual(ending, { how: 'timed-out', timeoutMs: 1 })
    }
})
