// The chaos test believes these rules, so they have to notice what they are there for.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { RunEvent } from '@windlass/shared/model/event.ts'
import { brokenRules, type Story } from './_kit/chaos-rules.ts'
import type { Entry } from './programs/chaos/index.ts'

type Logged = [type: string, data?: Record<string, unknown>]

const FIRST: Logged[] = [
  ['run.queued'],
  ['run.pending'],
  ['run.running', { attempt: 1 }],
  ['log.stdout', { text: 'line 1' }],
]
const CRASH: Logged[] = [['run.restarted'], ['run.queued'], ['run.pending'], ['run.running', { attempt: 2 }]]
const LINES: Logged[] = [
  ['log.stdout', { text: 'line 1' }],
  ['log.stdout', { text: 'line 2' }],
]
const END: Logged[] = [['output'], ['run.completed']]
const DIARY: Entry[] = [note(1, 'start'), note(2, 'start'), note(2, 'end')]

function note(attempt: number, what: Entry['what'], living: number[] = []): Entry {
  return { attempt, what, pid: attempt, ticks: '1', living }
}

function channelOf(type: string): RunEvent['channel'] {
  if (type.startsWith('log.')) return 'log'
  return type === 'output' ? 'output' : 'lifecycle'
}

function broken(
  logged: readonly Logged[],
  diary: readonly Entry[] = DIARY,
  status: Story['run']['status'] = 'completed',
): string {
  const events = logged.map(([type, data = {}], index) => ({
    cursor: index + 1,
    at: 0,
    channel: channelOf(type),
    type,
    data,
  }))
  const run = { status, attempt: 2, error: null } as Story['run']
  return brokenRules({ run, events, diary, lines: 2 }).join('; ')
}

test('a run that crashed once and then completed breaks no rule', () => {
  assert.equal(broken([...FIRST, ...CRASH, ...LINES, ...END]), '')
})

test('lost, doubled and disordered lines are noticed', () => {
  assert.match(broken([...FIRST, ...CRASH, LINES[0]!, ...END]), /attempt 2 has 1 of 2 lines/)
  assert.match(broken([...FIRST, ...CRASH, ...LINES, LINES[1]!, ...END]), /"line 2" where line 3 belongs/)
  assert.match(broken([...FIRST, ...CRASH, ...LINES.toReversed(), ...END]), /"line 2" where line 1 belongs/)
})

test('a second end, an event after the end and another status are noticed', () => {
  assert.match(broken([...FIRST, ...CRASH, ...LINES, ...END, ['run.completed']]), /ends 2 times/)
  assert.match(broken([...FIRST, ...CRASH, ...LINES, ...END, ['phase']]), /its last event phase/)
  assert.match(broken([...FIRST, ...CRASH, ...LINES, ...END], DIARY, 'failed'), /its status is failed/)
})

test('attempts that overlap, begin twice or do not end are noticed', () => {
  const logged = [...FIRST, ...CRASH, ...LINES, ...END]
  assert.match(broken(logged, [note(1, 'start'), note(2, 'start', [7]), note(2, 'end')]), /attempt 2 began beside 7/)
  assert.match(broken(logged, [note(1, 'start'), note(2, 'start'), note(2, 'start'), note(2, 'end')]), /began twice/)
  assert.match(
    broken(logged, [note(1, 'start'), note(2, 'start'), note(1, 'end'), note(2, 'end')]),
    /attempt 1 was alive/,
  )
  assert.match(broken(logged, [note(1, 'start'), note(2, 'start')]), /did not come to its end/)
})
