import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import type { FrameName } from '@windlass/shared/wire/program.ts'
import { OF_TAKEOVER, OF_RUN, parseable, WITHOUT_RUN } from '../../../run/program/frame-limits.ts'
import { BrokenFrame, createFrameReader, type Frame, type MostBytes } from '../../../run/program/frames.ts'
import { framesOf } from '../../../run/program/start-message.ts'
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

const read = (most: MostBytes, bytes: Buffer) => createFrameReader(() => most)(bytes)

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
  ]
  for (const [code, name] of codes) {
    const most = OF_RUN[name]!
    assert.match(String(read(OF_RUN, header(code, most + 1)).broken), new RegExp(`^BrokenFrame: a ${name} of `))
    assert.equal(read(OF_RUN, header(code, most)).frames.length, most ? 0 : 1)
    assert.ok(most <= 8 * KIB * KIB, name)
  }
  assert.ok(read(OF_RUN, header('?', 1)).broken instanceof BrokenFrame)
})

test('an output is refused by what its run may return, before its payload is there', () => {
  const most = framesOf({ outputBytes: KIB })
  assert.deepEqual(read(most, header('R', KIB)), { frames: [] })
  assert.match(String(read(most, header('R', KIB + 1)).broken), /a returned of 1025 bytes, 1024 at most/)
})

test('frames are the same however they are cut into reads', () => {
  const sent = ['one', '', 'x'.repeat(9_000), '', 'two'].map((text) => {
    const payload = Buffer.from(text)
    return Buffer.concat([header('o', payload.length), payload])
  })
  const bytes = Buffer.concat(sent)
  for (const size of [1, 2, 12, 13, 14, 100, 4_096, 9_013, bytes.length]) {
    const readNext = createFrameReader(() => OF_RUN)
    const texts: string[] = []
    for (let at = 0; at < bytes.length; at += size)
      texts.push(...readNext(bytes.subarray(at, at + size)).frames.map(({ payload }) => payload.toString()))
    assert.deepEqual(texts, ['one', '', 'x'.repeat(9_000), '', 'two'], `${size} bytes a read`)
  }
})

test('a frame that comes byte by byte takes little more than its size', () => {
  const readNext = createFrameReader(() => OF_RUN)
  readNext(header('R', 1024 * KIB))
  const before = usedBytes()
  const count = 200_000
  for (let sent = 0; sent < count; sent++) readNext(Buffer.from('x'))
  const each = (usedBytes() - before) / count
  assert.ok(each < 10, `${each} bytes for each byte`)
  assert.deepEqual(readNext(Buffer.alloc(1024 * KIB - count)).frames.length, 1)
})

setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

function usedBytes(): number {
  collectGarbage()
  const { heapUsed, arrayBuffers } = process.memoryUsage()
  return heapUsed + arrayBuffers
}

test('only a program that is taken back says where it stands, and a process without a run that it is there', () => {
  const rejoin = header('J', KIB)
  assert.match(String(read(OF_RUN, rejoin).broken), /a rejoin, which it does not say at this time/)
  assert.match(String(read(WITHOUT_RUN, rejoin).broken), /a rejoin,/)
  assert.deepEqual(read(OF_TAKEOVER, rejoin), { frames: [] })
  for (const code of ['o', 'j', 'b']) {
    assert.ok(read(OF_TAKEOVER, header(code, 0)).broken instanceof BrokenFrame)
    assert.ok(read(WITHOUT_RUN, header(code, 0)).broken instanceof BrokenFrame)
  }
  assert.equal(read(WITHOUT_RUN, header('r', 0)).frames.length, 1)
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
  // Also of a second `begun`, which would set back what is counted of its frames, and of words that are its runtime's.
  for (const name of ['nonsense', 'rejoin', 'begun', 'ready']) {
    const inputText = JSON.stringify({ lie: `line and ${name}` })
    const { ending, events } = await stage.play('lies-on-the-line.mjs', { inputText })
    assert.ok(ending.how === 'threw' && ending.error.code === 'PROGRAM_LINE_BROKEN', `${name}: ${ending.how}`)
    assert.deepEqual(texts(events), ['a line'], name)
  }
})

test('an event of too many values is left out, and the run goes on', async (t) => {
  const stage = await aStage(t)
  const inputText = JSON.stringify({ lie: 'log wide' })
  const { ending, events } = await stage.play('lies-on-the-line.mjs', { inputText })
  assert.deepEqual(ending, { how: 'returned', outputText: '"honest"' })
  assert.match(texts(events).join(), /^Left out: .* too many values/)
})
