import assert from 'node:assert/strict'
import { test } from 'node:test'
import { aStage, texts } from '../programs.ts'

test('an error that a program makes up is cut to what can be reported', async (t) => {
  const stage = await aStage(t)
  for (const lie of ['threw deep', 'threw large']) {
    const { ending } = await stage.play('lies-on-the-line.mjs', { inputText: JSON.stringify({ lie }) })
    assert.ok(ending.how === 'threw', `${lie}: ${ending.how}`)
    assert.deepEqual(ending.error.detail, { truncated: true }, lie)
    assert.ok(JSON.stringify(ending).length < 128 * 1024, lie)
  }
})

test('a mismatch of a program that replays nothing is a broken line, and none for a person to decide', async (t) => {
  const stage = await aStage(t)
  const { ending } = await stage.play('lies-on-the-line.mjs', { inputText: JSON.stringify({ lie: 'blocked' }) })
  assert.ok(ending.how === 'threw', ending.how)
  assert.equal(ending.error.code, 'PROGRAM_LINE_BROKEN')
  assert.match(ending.error.message, /descriptor 3, .*a blocked, which it does not say at this time/)
})

test('an event that nests too deep to be written is left out, and the run goes on', async (t) => {
  const stage = await aStage(t)
  const inputText = JSON.stringify({ lie: 'log deep' })
  const { ending, events } = await stage.play('lies-on-the-line.mjs', { inputText })
  assert.deepEqual(ending, { how: 'returned', outputText: '"honest"' })
  assert.equal(events.length, 2)
  for (const text of texts(events)) assert.match(text, /^Left out: .* nests deeper than \d+ levels/)
})
