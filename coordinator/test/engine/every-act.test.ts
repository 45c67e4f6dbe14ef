import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { repeatable } from '@windlass/shared/test/_kit/repeated.ts'
import type { Ending } from '@windlass/shared/model/ending.ts'
import { LOST_REASONS } from '@windlass/shared/model/lost-reasons.ts'
import { isFinal, isSuspended, mayMove, type RunStatus, SUSPENDED } from '@windlass/shared/model/run.ts'
import type { JournalOp } from '@windlass/shared/wire/journal.ts'
import { noChanges } from '../../engine/rules/journal.ts'
import { takeOp } from '../../engine/rules/journal-op.ts'
import { begin, goOn, lose, park, settle } from '../../engine/rules/outcome.ts'
import { useUp } from '../../engine/rules/out-of-time.ts'
import type { Moving, ProcessState } from '../../engine/rules/run.ts'
import { goOver } from '../../engine/commit/overtime.ts'
import { timeOut } from '../../engine/commit/time-out.ts'
import type { Version } from '../../workflows/targets.ts'
import { identity } from '../_kit/journal.ts'
import { DEFAULT_SIZES } from '../../sizes.ts'

// Whatever agents, clocks and people say, and in whatever order: a run moves along the contract's table or not at all. The rules
// are pure functions of a locked run, so that all of them can be tried in all places.

const ENDINGS: Ending[] = [
  { how: 'returned', outputText: '1' },
  { how: 'returned', outputText: 'no JSON' },
  { how: 'threw', error: { name: 'Error', message: 'no' } },
  { how: 'exited', exitCode: 1 },
  { how: 'killed', signal: 'SIGKILL' },
  { how: 'timed-out', timeoutMs: 1 },
  { how: 'cancelled', forced: false },
  { how: 'lost', reason: 'gone' },
  { how: 'unready', reason: 'no secrets' },
  { how: 'unready', reason: LOST_REASONS.fenced },
  { how: 'unready', reason: LOST_REASONS.killed },
  { how: 'evicted', reason: 'age' },
  { how: 'blocked', mismatch: { expected: 'a', received: 'b', at: '' } },
  // No text can be made of it, and a program may say it.
  { how: 'blocked', mismatch: { expected: { toString: 1, valueOf: 1 }, received: [], at: 1 } } as unknown as Ending,
]
const OPS: JournalOp[] = [
  { op: 'open', entry: identity(1, 'sleep'), ask: { for: 'sleep', ms: 1 } },
  { op: 'close', entry: identity(1, 'step'), state: 'done', result: '1' },
  { op: 'close', entry: identity(25_001, 'step'), state: 'done', result: '1' },
  { op: 'adopt', n: 1, position: 1 },
  { op: 'deliver', list: [[1, 1, 1, 0]] },
  { op: 'drift', n: 1, args: '' },
]

type Act = (run: Moving, version: Version) => void
const ACTS: [string, Act][] = [
  ['start', (run) => begin(run, 0)],
  ['resume', (run) => goOn(run, 0)],
  [
    'resume timed-out',
    (run, version) => {
      goOn(run, 0)
      useUp(run, version)
    },
  ],
  ...(['sleep', 'input', 'child'] as const).map((kind): [string, Act] => [`park ${kind}`, (run) => park(run, kind, 0)]),
  ...[false, true].flatMap((isOffered) =>
    ENDINGS.map((ending): [string, Act] => [
      `end ${ending.how}`,
      (run, version) => settle(run, ending, 0, { version, output: { line: 'null' }, config: DEFAULT_SIZES, isOffered }),
    ]),
  ),
  ...OPS.map((op, i): [string, Act] => [`op ${i} ${op.op}`, (run) => takeOp(run, 0, { op })]),
  ['lease lost', (run, version) => lose(run, 0, version, { what: 'unknown', reason: 'silence' })],
]
const CLOCKS: [string, Act][] = (['queue-timeout', 'wall-timeout'] as const).map((kind) => [
  kind,
  (run, version) => timeOut(run, kind, 0, version),
])

function aVersion(crash: number, error: number, onCrash: string): Version {
  const retries = { error: { max: error, factor: 2, delayMs: 1, maxDelayMs: 1 }, onCrash }
  const descriptor = { retries, timeoutMs: 1, wallTimeoutMs: 1, queueTimeoutMs: 1 }
  return { crashRetries: crash, fenceRetries: crash, descriptor } as unknown as Version
}

function moving(status: RunStatus, place: ProcessState | null): Moving {
  const facts = { id: 'run_x', runnerId: 'rnr_x', epoch: 1, attempt: 1, cursor: 0, seq: 0, status, place }
  const counts = {
    entries: 0,
    forgottenEntries: 0,
    journalChars: 0,
    crashes: 0,
    fences: 0,
    thrown: 0,
    replays: 0,
    cutReplays: 0,
    activeMs: 0,
    computeMs: 0,
    depth: 0,
  }
  const flags = { timedOut: false, started: false, isMoved: false, suspended: false, resumed: false, released: false }
  const none = { parentRunId: null, parentEntry: null, parent: undefined, startedAt: null, blocked: null, output: null }
  const more = {
    error: null,
    requeued: null,
    lostAttempt: null,
    replayAfterMs: null,
    pokes: new Set(),
    events: [],
    journal: noChanges(),
  }
  return { ...facts, ...counts, ...flags, ...none, ...more } as unknown as Moving
}

/** Where a run with a process can be. */
const PROCESS_STATES: [RunStatus, ProcessState][] = [
  ['pending', 'hot'],
  ['running', 'hot'],
  ...SUSPENDED.flatMap((status): [RunStatus, ProcessState][] => [
    [status, 'replaying'],
    [status, 'parked'],
  ]),
  ...(['hot', 'replaying', 'parked'] as const).map((place): [RunStatus, ProcessState] => ['cancelling', place]),
]

function assertSound(run: Moving, from: RunStatus): void {
  const types = run.events.flatMap(({ type }) => (type === 'run.resumed' ? ['running'] : [type.replace(/^run\./, '')]))
  let status = from
  for (const to of types.filter((type) => ['running', 'queued', 'pending'].includes(type) || isNamed(type))) {
    assert.ok(mayMove(status, to as RunStatus), `${status} → ${to}`)
    status = to as RunStatus
  }
  assert.equal(status, run.status)
  if (isFinal(run.status)) assert.deepEqual([run.place, run.released], [null, true])
  if (run.status === 'queued') assert.equal(run.place, null)
  if (run.status === 'failed') assert.ok(run.error)
  if (run.status === 'running' || run.status === 'pending') assert.equal(run.place, 'hot')
  if (isSuspended(run.status)) assert.notEqual(run.place, 'hot')
}

const isNamed = (type: string): boolean =>
  ['completed', 'failed', 'cancelled', 'cancelling', 'sleeping', 'awaiting_input', 'waiting_for_child'].includes(type)

interface Case {
  from: [RunStatus, ProcessState]
  timedOut: boolean
  retries: number
  said: [string, Act]
}

const CASES: Case[] = PROCESS_STATES.flatMap((from) =>
  [false, true].flatMap((timedOut) =>
    [0, 3].flatMap((retries) => [...ACTS, ...CLOCKS].map((said) => ({ from, timedOut, retries, said }))),
  ),
)

test('one act in every place moves a run along the table, or not at all', () => {
  assert.ok(CASES.length > 900, `${CASES.length} cases`)
  for (const { from, timedOut, retries, said } of CASES) {
    const run = moving(...from)
    run.timedOut = timedOut
    const [name, act] = said
    assert.doesNotThrow(() => act(run, aVersion(retries, retries, 'keep')), `${name} at ${from.join(', ')}`)
    assertSound(run, from[0])
  }
})

test('the clocks find runs without a process too', () => {
  for (const status of ['queued', ...SUSPENDED] as const)
    for (const [, act] of CLOCKS) {
      const run = moving(status, null)
      act(run, aVersion(0, 0, 'keep'))
      assertSound(run, status)
    }
})

test('what a run did in time leads it to its end, to its stop, or to a process that is being stopped', () => {
  for (const { from, retries, said } of CASES) {
    const run = moving(...from)
    const version = aVersion(retries, retries, 'keep')
    said[1](run, version)
    goOver(run, { version, at: 1, lastEventAt: 0 })
    assertSound(run, from[0])
    const isStopped = run.timedOut && run.place !== null
    assert.ok(isFinal(run.status) || isStopped, `${said[0]} at ${from.join(', ')}: ${run.status}`)
    if (isFinal(run.status)) assert.deepEqual([run.requeued, run.replayAfterMs], [null, null])
  }
})

test('any sequence of acts keeps to the table until the process is released', (t) => {
  const acts = fc.array(fc.constantFrom(...ACTS, ...CLOCKS), { minLength: 1, maxLength: 12 })
  const story = fc.record({
    from: fc.constantFrom(...PROCESS_STATES),
    said: acts,
    crash: fc.nat(2),
    error: fc.nat(2),
    onCrash: fc.constantFrom('keep', 'fresh'),
  })
  const holds = fc.property(story, ({ from, said, crash, error, onCrash }) => {
    const run = moving(...from)
    for (const [, act] of said) {
      // What comes after the end of a placement is stale.
      if (run.released) break
      act(run, aVersion(crash, error, onCrash))
    }
    assertSound(run, from[0])
  })
  fc.assert(holds, { numRuns: 5000, ...repeatable(t) })
})
