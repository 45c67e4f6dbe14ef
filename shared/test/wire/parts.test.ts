import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { type Lane, LEAST_PART_CHARS, MESSAGE_BYTES, messagesOf, PART_CHARS, partOf } from '../../wire/parts.ts'
import { repeatable } from '../_kit/repeated.ts'

test('the parts of a frame are its text again, and each fits into a message', (t) => {
  const char = fc.constantFrom('{', 'a', '"', 'é', '日', '🌊')
  const text = fc.tuple(fc.array(char, { minLength: 1, maxLength: 20 }), fc.integer({ min: 0, max: 4 * PART_CHARS }))
  const lanes = fc.constantFrom<Lane[]>('entries', 'others')
  const sizes = fc.constantFrom(2 * LEAST_PART_CHARS, PART_CHARS)
  fc.assert(
    fc.property(text, lanes, sizes, ([chars, length], lane, partChars) => {
      const frame = `{${chars.join('').repeat(Math.ceil(length / chars.length))}}`
      const messages = [...messagesOf(frame, lane, () => partChars)]
      for (const message of messages) {
        assert.ok(message.isWellFormed())
        assert.ok(Buffer.byteLength(message) <= MESSAGE_BYTES)
      }
      if (frame.length <= partChars) return assert.deepEqual(messages, [frame])
      const parts = messages.map((message) => partOf(message)!)
      assert.equal(parts.map((part) => part.text).join(''), frame)
      assert.deepEqual(
        parts.map((part) => [part.lane, part.isLast]),
        parts.map((_, n) => [lane, n === parts.length - 1]),
      )
      assert.ok(parts.slice(0, -1).every((part) => part.text.length >= LEAST_PART_CHARS))
    }),
    { numRuns: 200, ...repeatable(t) },
  )
})

test('a frame that came whole is no part', () => {
  for (const text of ['{"t":"entries"}', '', 'x', '[1]']) assert.equal(partOf(text), undefined)
})
