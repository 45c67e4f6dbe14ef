// Scripts of a shell open /dev/stdout and /dev/stderr. These lead to pipes, and a pipe asks who opens it.
import assert from 'node:assert/strict'
import test from 'node:test'
import { PLAIN } from '../../isolation/plan.ts'
import { aStage, texts } from '../run/programs.ts'
import { NEEDS_BUBBLEWRAP, NEEDS_ROOT, ofUsers } from './requirements.ts'

const ISOLATIONS = {
  'without users': { skip: false, isolation: PLAIN },
  'with users': { skip: NEEDS_ROOT, isolation: ofUsers() },
  'in bubblewrap': { skip: NEEDS_BUBBLEWRAP, isolation: { ...PLAIN, level: 'bubblewrap' } },
  'in bubblewrap, with users': { skip: NEEDS_ROOT || NEEDS_BUBBLEWRAP, isolation: ofUsers({ level: 'bubblewrap' }) },
} as const

for (const [name, { skip, isolation }] of Object.entries(ISOLATIONS))
  test(`a program opens its stdout and stderr by their names, ${name}`, { skip }, async (t) => {
    const { ending, events } = await (await aStage(t, { isolation })).play('writes-to-devices.mjs')
    assert.deepEqual(ending, { how: 'returned', outputText: '[0,0]' })
    assert.deepEqual(texts(events).toSorted(), ['to stderr', 'to stdout'])
  })
