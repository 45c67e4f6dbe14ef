import assert from 'node:assert/strict'
import { test } from 'node:test'
import { goesOn, mayWait, newCourse, step, type Course, type CourseEvent } from '../../../run/program/course.ts'

const RETURNED: CourseEvent = { t: 'ended', how: { how: 'returned', outputText: '1' } }
const THREW: CourseEvent = { t: 'ended', how: { how: 'threw', error: { name: 'Error', message: 'no' } } }
const CANCEL: CourseEvent = { t: 'asked', message: { why: 'cancelled', reason: 'typo', graceMs: 100 } }
const HANDOVER: CourseEvent = { t: 'asked', message: { why: 'handover', reason: '', graceMs: 100 } }
const LOST: CourseEvent = { t: 'abandoned', why: 'lost', reason: 'fenced' }

/** Where these lead, and what each asks for. */
function after(...events: CourseEvent[]): { course: Course; actions: unknown[] } {
  let course = newCourse(false)
  const actions = events.map((event) => {
    const [next, asked] = step(course, event)
    course = next
    return asked
  })
  return { course, actions }
}

test('the first word of a program about its end counts, and it is waited for no longer', () => {
  const { course, actions } = after(RETURNED, THREW)
  assert.equal(course.outcome?.how, 'returned')
  assert.deepEqual(actions, [['disarm', 'settle'], []])
  assert.equal(course.isForced, false)
})

test('one that was asked to stop is told so once, and is forced only when it has outstayed its grace', () => {
  const { course, actions } = after(CANCEL, CANCEL)
  assert.deepEqual(actions, [['disarm', { ask: { why: 'cancelled', reason: 'typo', graceMs: 100 } }], []])
  assert.deepEqual([course.stop, course.isForced, goesOn(course)], [{ why: 'cancelled' }, false, false])
  const late = after(CANCEL, { t: 'outstayed' })
  assert.deepEqual([late.course.isForced, late.actions[1]], [true, ['kill', 'settle']])
})

test('one that goes elsewhere may wait, and whoever cancels it after that is heard', () => {
  const { course, actions } = after(HANDOVER, HANDOVER, CANCEL)
  const cancel = { why: 'cancelled', reason: 'typo', graceMs: 100 }
  assert.deepEqual(actions.slice(1), [[], ['disarm', { ask: cancel }]])
  assert.deepEqual([course.stop, mayWait(course)], [{ why: 'cancelled' }, false])
  const { course: leaving } = after(HANDOVER)
  assert.deepEqual([goesOn(leaving), mayWait(leaving), mayWait(after(HANDOVER, RETURNED).course)], [false, true, false])
  assert.deepEqual(after(CANCEL, HANDOVER).course.stop, { why: 'cancelled' })
})

test('one that has ended is not asked to stop any more', () => {
  const { course, actions } = after(RETURNED, CANCEL)
  assert.deepEqual([course.stop, actions[1]], [undefined, []])
})

test('one that is given up is killed, whatever it was asked before', () => {
  const { course, actions } = after(CANCEL, LOST)
  assert.deepEqual(course.stop, { why: 'lost', reason: 'fenced' })
  assert.deepEqual([course.isForced, actions[1]], [true, ['disarm', 'kill', 'settle']])
})

test('one whose time was over is known to be out of time, whoever gives it up after that', () => {
  const timedOut: CourseEvent = { t: 'asked', message: { why: 'timed-out', reason: '', graceMs: 100 } }
  assert.equal(after(timedOut, LOST).course.isOutOfTime, true)
  assert.deepEqual(after(timedOut, LOST).course.stop, { why: 'lost', reason: 'fenced' })
  for (const course of [after(CANCEL, timedOut).course, after(RETURNED, timedOut).course, after(LOST).course])
    assert.equal(course.isOutOfTime, false)
})

test('one that cannot replay is killed, and its own word before that counts', () => {
  const blocked: CourseEvent = {
    t: 'blocked',
    how: { how: 'blocked', mismatch: { expected: '', received: '', at: '' } },
  }
  const { course, actions } = after(blocked)
  assert.deepEqual([course.outcome?.how, course.isForced, actions], ['blocked', true, [['disarm', 'settle', 'kill']]])
  assert.equal(after(RETURNED, blocked).course.outcome?.how, 'returned')
})

test('a process that outlives the word of its program is killed and not called forced', () => {
  assert.equal(after(RETURNED, { t: 'overdue' }).course.isForced, false)
  assert.equal(after({ t: 'overdue' }).course.isForced, true)
})
