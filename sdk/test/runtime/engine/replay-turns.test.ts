import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { JournalRecord } from '@windlass/shared/wire/journal.ts'
import type { Call } from '../../../runtime/engine/call.ts'
import { Replay, undelivered } from '../../../runtime/engine/replay.ts'

/** A replay of these entries, and what it had done. */
function aReplay(...journal: JournalRecord[]) {
  const done: string[] = []
  const replay = new Replay(journal, {
    bind: ({ n }) => void done.push(`bind ${n}`),
    give: ({ n }) => void done.push(`give ${n}`),
    drifted: (n, args) => void done.push(`drifted ${n} ${args}`),
    block: ({ expected, received }) => void done.push(`${expected} <> ${received}`),
  })
  return { replay, done }
}

/** Entry `n`: a question that was called as the `n`th, not answered unless `more` says so. */
function anEntry(n: number, name: string, more: Partial<JournalRecord> = {}): JournalRecord {
  const call = { parent: '', kind: 'input', name, hash: name, occurrence: 1, args: `"${name}"`, site: '' } as const
  const fresh = { state: 'open', result: null, drifted: false, delivered: null, after: 0, idle: false } as const
  return { n, position: n, attempt: 1, completed: null, ...call, ...fresh, ...more }
}

const answered = (order: number, more: Partial<JournalRecord> = {}): Partial<JournalRecord> => ({
  state: 'done',
  result: '"yes"',
  delivered: order,
  after: order,
  ...more,
})

function aCall(name: string, hash = name): Call {
  const facts = { n: 0, position: 0, parent: '', kind: 'input', name, hash, occurrence: 1, args: `"${hash}"` } as const
  return { ...facts, site: '', within: undefined, work: { act: () => {} }, ...Promise.withResolvers<unknown>() }
}

test('a result is given when all is called that had been called by then, at once or when the program is idle', () => {
  const { replay, done } = aReplay(anEntry(1, 'a', answered(2)), anEntry(2, 'b', answered(1, { idle: true, after: 2 })))
  assert.equal(replay.take(aCall('a')), true)
  assert.deepEqual([replay.step(), done.splice(0)], [false, ['bind 1']])
  assert.equal(replay.take(aCall('b')), true)
  assert.deepEqual([replay.step(), done.splice(0)], [false, ['bind 2']], 'it came to an idle program')
  assert.deepEqual([replay.idle(false), done.splice(0)], ['again', ['give 2']])
  assert.deepEqual([replay.step(), done.splice(0)], [true, ['give 1']])
  assert.deepEqual([replay.step(), replay.idle(false), done], [false, 'park', []])
})

test('a call that is not recorded is held, and new when nothing recorded is left', () => {
  const { replay, done } = aReplay(anEntry(1, 'a'))
  const call = aCall('new')
  assert.equal(replay.take(call), false)
  replay.hold(call)
  assert.equal(replay.take(aCall('a')), true)
  assert.equal(replay.idle(false), 'live')
  assert.deepEqual(replay.takeHeld(), [call])
  assert.deepEqual(done, ['bind 1'])
})

test('a held call with other arguments takes the entry that is most alike, one at a time', () => {
  const { replay, done } = aReplay(anEntry(1, 'a', { hash: 'x', args: '"x 1"' }), anEntry(2, 'a', { args: '"a 2"' }))
  for (const hash of ['2', '1']) replay.hold(aCall('a', hash))
  assert.deepEqual([replay.idle(false), done.splice(0)], ['again', ['drifted 1 "1"', 'bind 1']])
  assert.deepEqual([replay.idle(false), done.splice(0)], ['again', ['drifted 2 "2"', 'bind 2']])
  assert.equal(replay.idle(false), 'park')
})

test('where it may come of a stop of the agent, nobody is told that the program is another one', () => {
  const { replay, done } = aReplay(anEntry(1, 'a', answered(1)), anEntry(2, 'b'))
  assert.deepEqual([replay.idle(true), done], ['left', []])
  replay.hold(aCall('c'))
  assert.deepEqual([replay.idle(true), done], ['left', []])
  assert.equal(replay.take(aCall('a')), true)
  assert.equal(replay.idle(true), 'again', 'what is recorded goes on')
})

test('what cannot be the recorded program blocks the replay, with what was expected', () => {
  const other = aReplay(anEntry(1, 'a'))
  other.replay.hold(aCall('b'))
  assert.equal(other.replay.idle(false), 'blocked')
  const less = aReplay(anEntry(1, 'a'))
  assert.equal(less.replay.idle(false), 'blocked')
  const ended = aReplay(anEntry(1, 'a', answered(1)))
  ended.replay.take(aCall('a'))
  ended.replay.block('run() returned')
  assert.deepEqual(other.done, ['requestInput("a") <> requestInput("b")'])
  assert.deepEqual(less.done, ['requestInput("a") <> no further call: the program waits for something else'])
  assert.deepEqual(ended.done, ['bind 1', 'the result of requestInput("a") <> run() returned'])
})

test('what the last process was not given any more is there in the order in which it came', () => {
  const late = (completed: number | null) => ({ state: 'failed', result: '{}', completed }) as const
  const journal = [anEntry(1, 'a', late(null)), anEntry(2, 'b', late(2)), anEntry(3, 'c', late(1)), anEntry(4, 'd')]
  assert.deepEqual(
    undelivered([...journal, anEntry(5, 'e', answered(1))]).map(({ n, state }) => [n, state]),
    [
      [3, 'failed'],
      [2, 'failed'],
      [1, 'failed'],
    ],
  )
})
