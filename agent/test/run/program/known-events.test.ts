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
