import assert from 'node:assert/strict'
import { test } from 'node:test'
import { threwError } from '../../engine/rules/run-errors.ts'

const thrown = (text: string, detail: object = {}) =>
  threwError({ name: 'Error', message: text, stack: text, detail } as never)
const bytes = (value: unknown) => Buffer.byteLength(JSON.stringify(value))

test('message, stack and detail of an error have 8,000 bytes as JSON at most, whatever characters they are of', () => {
  for (const text of ['x', '\u0001', '"', 'é', '😀', '\ud83d', 'a😀', '\n']) {
    const { message, detail } = thrown(text.repeat(9000))
    for (const cut of [message, detail?.['stack'] as string]) {
      assert.ok(text.repeat(9000).startsWith(cut))
      const left = 8002 - bytes(cut)
      assert.ok(left >= 0 && left < 12, `${JSON.stringify(text)}: ${left}`)
    }
  }
  assert.ok(thrown('😀'.repeat(9000)).message.isWellFormed())
})

test('a text that fits is kept whole, also one with the most bytes', () => {
  for (const text of ['\u0001'.repeat(1333), 'x'.repeat(8000), 'é'.repeat(4000)])
    assert.equal(thrown(text).message, text)
})

test('a detail of few characters and many bytes is left out', () => {
  assert.deepEqual(thrown('x', { text: '\u0001'.repeat(2000) }).detail, { truncated: true, name: 'Error', stack: 'x' })
  assert.equal(thrown('x', { text: 'y'.repeat(7000) }).detail?.['text'], 'y'.repeat(7000))
})
