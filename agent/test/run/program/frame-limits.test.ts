import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { FrameName } from '@windlass/shared/wire/program.ts'
import { MOST_BYTES, parseable } from '../../../run/program/frame-limits.ts'
import { BrokenFrame, createFrameReader, type Frame } from '../../../run/program/frames.ts'
import { aRedactor } from '../../_kit/a-redactor.ts'
import { aStage, texts } from '../programs.ts'

const KIB = 1024
const frame = (name: FrameName, payload: string): Frame => ({ name, at: 0, payload: Buffer.from(payload) })
const named = (count: number) =>
  JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, n) => [`k${n}`, {}])))

function header(code: string, bytes: number): Buffer {
  const head = Buffer.alloc(13)
  head.write(code)
  head.writeUInt32LE(bytes, 1)
  return head
}

test('a frame that is too long for its kind is refused before its payload is there', () => {
  const codes: [string, FrameName][] = [
    ['b', 'begun'],
    ['o', 'out'],
    ['l', 'log'],
    ['T', 'threw'],
    ['i', 'idle'],
    ['j', 'journal'],
    ['k', 'park'],
    ['B', 'blocked'],
    ['J', 'rejoin'],
  ]
  for (const [code, name] of codes) {
    const read = createFrameReader(MOST_BYTES)
    assert.throws(() => read(header(code, MOST_BYTES[name] + 1)), { name: 'BrokenFrame', message: new RegExp(name) })
    assert.deepEqual(createFrameReader(MOST_BYTES)(header(code, MOST_BYTES[name])).length, MOST_BYTES[name] ? 0 : 1)
    assert.ok(MOST_BYTES[name] <= 8 * KIB * KIB, name)
  }
  assert.throws(() => createFrameReader(MOST_BYTES)(header('?', 1)), BrokenFrame)
})

test('whatever 64 KiB of JSON hold is parsed; of an event with more values a note stands in its place', () => {
  for (const value of ['1,', '[],', '"",']) {
    const full = frame('phase', `{"name":"x","data":[${value.repeat((64 * KIB) / value.length - 1)}1]}`)
    assert.equal(parseable(full), full)
  }
  for (const name of ['log', 'phase'] as const) {
    const { payload } = parseable(frame(name, `{"text":"x","fields":${named(15_000)}}`))
    assert.match(payload.toString(), /^{"text":"Left out: .* too many values/)
  }
  assert.throws(() => parseable(frame('threw', named(15_000))), BrokenFrame)
  assert.throws(() => parseable(frame('journal', `{"op":"deliver","list":${named(1_500)}}`)), BrokenFrame)
  assert.throws(() => parseable(frame('rejoin', named(2_500))), BrokenFrame)
})

test('the longest that a program can say of its failure is told', async (t) => {
  const stage = await aStage(t)
  const { ending } = await stage.play('fails-at-length.mjs')
  assert.ok(ending.how === 'threw')
  assert.equal(ending.error.code, 'RUN_FAILED')
  assert.equal(ending.error.message.length, 10_001)
  assert.deepEqual(ending.error.detail, { truncated: true })
})

test('a program that says what its runtime never says fails, before it is parsed', async (t) => {
  const stage = await aStage(t)
  for (const lie of ['log large', 'threw wide', 'returned large']) {
    const { ending } = await stage.play('lies-on-the-line.mjs', { inputText: JSON.stringify({ lie }) })
    assert.ok(ending.how === 'threw' && ending.error.code === 'PROGRAM_LINE_BROKEN', `${lie}: ${ending.how}`)
  }
})

test('only the first output is looked through for secrets', async (t) => {
  const stage = await aStage(t)
  const looked: string[] = []
  const real = aRedactor({ SECRET: 'correct-horse' })
  const redactor = { ...real, json: (text: string) => (looked.push(text), real.json(text)) }
  const inputText = JSON.stringify({ lie: 'returned twice' })
  const { ending } = await stage.play('lies-on-the-line.mjs', { inputText, redactor })
  assert.deepEqual(ending, { how: 'returned', outputText: '1' })
  assert.deepEqual(looked, ['1'])
})

test('what a program has told before it broke its line is told', async (t) => {
  const stage = await aStage(t)
  const inputText = JSON.stringify({ lie: 'line and nonsense' })
  const { ending, events } = await stage.play('lies-on-the-line.mjs', { inputText })
  assert.ok(ending.how === 'threw' && ending.error.code === 'PROGRAM_LINE_BROKEN')
  assert.deepEqual(texts(events), ['a line'])
})

test('an event of too many values is left out, and the run goes on', async (t) => {
  const stage = await aStage(t)
  const inputText = JSON.stringify({ lie: 'log wide' })
  const { ending, events } = await stage.play('lies-on-the-line.mjs', { inputText })
  assert.deepEqual(ending, { how: 'returned', outputText: '"honest"' })
  assert.match(texts(events).join(), /^Left out: .* too many values/)
})
