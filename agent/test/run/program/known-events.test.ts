import assert from 'node:assert/strict'
import test from 'node:test'
import { createProgramOutput } from '../../../run/program/output.ts'

test('how far a program was heard that was taken back is not said before it has told again what is known', () => {
  const given: unknown[] = []
  const output = createProgramOutput({
    onEvents: (events) => void given.push(...events),
    onFrame: () => [],
    isReplaying: () => false,
    lines: undefined,
    redactor: undefined,
    eventDataBytes: 64 * 1024,
    pause: () => undefined,
    resume: () => undefined,
    known: { frames: 3, journal: 0, events: 2, onJournal: () => undefined },
    failed: (error) => assert.fail(String(error)),
  })
  const print = (text: string) => output.frames([{ name: 'out', at: Date.now(), payload: Buffer.from(text) }])
  // Frame 3 and two events after it are known: with another mark here these events would be taken for new ones.
  assert.equal(output.framesRead().frames, null)
  print('known\n')
  assert.equal(output.framesRead().frames, null)
  print('known too\n')
  assert.equal(output.framesRead().frames, 5)
  print('new\n')
  assert.equal(given.length, 1)
})

test('what a program has said before it was taken back is of that time, and of none before its process', () => {
  const times: number[] = []
  const output = createProgramOutput({
    onEvents: (events) => void times.push(...events.map(({ at }) => at)),
    onFrame: () => [],
    isReplaying: () => false,
    lines: undefined,
    redactor: undefined,
    eventDataBytes: 64 * 1024,
    pause: () => undefined,
    resume: () => undefined,
    known: { frames: 3, journal: 0, events: 0, onJournal: () => undefined },
    startedAt: 1_000_000,
    failed: (error) => assert.fail(String(error)),
  })
  const payload = Buffer.from('said\n')
  const now = Date.now()
  for (const at of [1_000_000, 999_999, now + 3_600_000]) output.frames([{ name: 'out', at, payload }])
  assert.equal(times[0], 1_000_000)
  assert.ok(times.slice(1).every((at) => at >= now && at < now + 3_600_000))
  assert.equal(output.endedAt(), undefined)
  output.frames([{ name: 'returned', at: 2_000_000, payload: Buffer.from('1') }])
  output.frames([{ name: 'returned', at: 3_000_000, payload: Buffer.from('2') }])
  assert.equal(output.endedAt(), 2_000_000)
})
