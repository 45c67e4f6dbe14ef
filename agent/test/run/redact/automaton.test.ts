import assert from 'node:assert/strict'
import { test } from 'node:test'
import * as fc from 'fast-check'
import { repeatable } from '@windlass/shared/test/_kit/repeated.ts'
import { buildAutomaton } from '../../../run/redact/automaton.ts'
import { TooMuchToFind } from '../../../run/redact/pattern-tree.ts'
import { createRedactionStream } from '../../../run/redact/stream.ts'
import { aRedactor, inOneGo } from '../../_kit/a-redactor.ts'

const automatonOf = (patterns: readonly string[], mostBytes?: number) =>
  inOneGo(
    buildAutomaton(
      patterns.map((each) => Buffer.from(each)),
      mostBytes,
    ),
  )

/** Long ones that begin alike, hold each other and come back in themselves. */
const pattern = fc
  .array(fc.constantFrom('ab', 'abc', 'ca', 'abca', 'b\0', 'aaaa'), { minLength: 1, maxLength: 12 })
  .map((parts) => parts.join(''))
const patterns = fc.array(pattern, { minLength: 1, maxLength: 12 })
const textOf = (given: readonly string[], more: readonly string[]) =>
  more.map((part, n) => part + (given[n % given.length] ?? '').slice(0, 1 + part.length * 3)).join('')
const more = fc.array(fc.constantFrom('', 'a', 'ab', 'bca', 'cab', 'd', '\0', 'aaa'), { maxLength: 60 })

test('a state is the longest end of the text that begins a pattern, and knows the longest that ends in it', (t) => {
  fc.assert(
    fc.property(patterns, more, (given, parts) => {
      const text = textOf(given, parts)
      const bytes = Buffer.from(text)
      const { step, depth, found, occursIn } = automatonOf(given)
      let state = 0
      for (let at = 0; at < bytes.length; at++) {
        state = step(state, bytes, at)
        const ends = Array.from({ length: at + 1 }, (_, from) => text.slice(from, at + 1))
        const begun = ends.find((end) => given.some((each) => each.startsWith(end))) ?? ''
        const whole = ends.find((end) => given.includes(end)) ?? ''
        assert.equal(depth(state), begun.length)
        assert.equal(found(state), whole.length)
      }
      assert.equal(
        occursIn(bytes),
        given.some((each) => text.includes(each)),
      )
    }),
    { numRuns: 3_000, ...repeatable(t) },
  )
})

test('long patterns are found in whatever pieces a text comes, and nothing else is held', (t) => {
  const lengths = fc.array(fc.integer({ min: 1, max: 9 }), { minLength: 1, maxLength: 9 })
  fc.assert(
    fc.property(patterns, more, lengths, (given, parts, pieces) => {
      const text = textOf(given, parts)
      const bytes = Buffer.from(text)
      const stream = createRedactionStream(automatonOf(given))
      const out: Buffer[] = []
      for (let at = 0, n = 0; at < bytes.length; n++) {
        const end = Math.min(bytes.length, at + pieces[n % pieces.length]!)
        out.push(stream.push(bytes.subarray(at, end)))
        const tails = Array.from({ length: end }, (_, from) => text.slice(from, end))
        const begun = tails.find((tail) => given.some((each) => each.startsWith(tail))) ?? ''
        assert.equal(stream.heldBytes, begun.length)
        at = end
      }
      const covered = Array.from(text, () => false)
      for (const each of given)
        for (let at = text.indexOf(each); at >= 0; at = text.indexOf(each, at + 1))
          covered.fill(true, at, at + each.length)
      const hidden = Array.from(text, (char, at) => (covered[at] ? (covered[at - 1] ? '' : '***') : char)).join('')
      assert.equal(Buffer.concat([...out, stream.end()]).toString(), hidden)
    }),
    { numRuns: 2_000, ...repeatable(t) },
  )
})

test('many patterns with many branches are all found', () => {
  const given = Array.from({ length: 20_000 }, (_, n) => `${n % 7}k${Math.imul(n, 2_654_435_761) >>> 0}-${n}`)
  const { occursIn } = automatonOf(given)
  for (const each of given) assert.ok(occursIn(Buffer.from(`x${each.slice(0, -1)} ${each}`)), each)
  for (const each of given.slice(0, 1_000)) assert.ok(!occursIn(Buffer.from(`x${each.slice(1, -1)}!${each.slice(3)}`)))
})

test('to find secrets takes some forty bytes for each of theirs, and 200 where most have to be escaped', () => {
  let seed = 1
  const next = () => (seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0) >>> 8
  const pick = (from: string, length: number) => Array.from({ length }, () => from[next() % from.length]).join('')
  const letters = 'ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/'
  const one = pick(letters, 16 * 1024)
  assert.ok(aRedactor({ one }).bytes < 64 * one.length, `${aRedactor({ one }).bytes / one.length} a byte`)
  const lines = Array.from({ length: 400 }, () => pick(letters, 64)).join('\n')
  assert.ok(aRedactor({ lines }).bytes < 64 * lines.length, `${aRedactor({ lines }).bytes / lines.length} a byte`)
  const odd = 'é"\\/<'.repeat(2_000)
  const bytes = Buffer.byteLength(odd)
  assert.ok(aRedactor({ odd }).bytes < 256 * bytes, `${aRedactor({ odd }).bytes / bytes} a byte`)
})

test('what would take too much memory is not made', () => {
  const given = Array.from({ length: 1_000 }, (_, n) => `${n}-`.repeat(40))
  const { bytes } = automatonOf(given)
  assert.equal(automatonOf(given, bytes).bytes, bytes)
  assert.throws(() => automatonOf(given, bytes - 300_000), TooMuchToFind)
  // Of two letters in no order: it fails to another place again and again.
  let seed = 1
  const next = () => (seed = (Math.imul(seed, 1_103_515_245) + 12_345) >>> 0) >>> 24
  const many = [Array.from({ length: 100_000 }, () => (next() % 2 ? 'a' : 'b')).join('')]
  const all = automatonOf(many)
  assert.throws(() => automatonOf(many, all.bytes - 150_000), TooMuchToFind)
})
