import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import * as fc from 'fast-check'
import { repeatable } from '@windlass/shared/test/_kit/repeated.ts'
import { aRedactor, through } from '../../_kit/a-redactor.ts'

// What a secret looks like somewhere is written here once more, by other means than in the redactor: with the encoders that
// programs use, and applied to all that stands around it.

const special = fc.constantFrom(...Array.from('"\\/\'%&+<>= \t#?:@!()*~`$é日🌊\u{7f}\u{200b}'))
const secret = fc
  .array(
    fc.oneof(
      { weight: 3, arbitrary: fc.constantFrom(...Array.from('abcXYZ019-_.')) },
      { weight: 1, arbitrary: special },
    ),
    {
      minLength: 6,
      maxLength: 60,
    },
  )
  .map((chars) => chars.join(''))
  .filter((text) => Buffer.byteLength(text.trim()) >= 6)

/** Of letters that no secret is made of, so that nothing of it is hidden by chance. */
const around = fc
  .array(fc.constantFrom(...Array.from('klmnopq \n,;|')), { maxLength: 40 })
  .map((chars) => chars.join(''))

const lengths = fc.array(fc.integer({ min: 1, max: 50 }), { minLength: 1, maxLength: 20 })

const upperHex = (text: string) => text.replace(/%[0-9a-f]{2}/gi, (each) => each.toUpperCase())
const lowerHex = (text: string) => text.replace(/%[0-9a-f]{2}/gi, (each) => each.toLowerCase())
const ascii = (text: string) =>
  text.replace(/[^\x20-\x7e]/g, (each) => `\\u${each.charCodeAt(0).toString(16).padStart(4, '0')}`)
const json = (text: string) => JSON.stringify(text)

/** Text with a secret in it, as programs encode the whole of it. */
const ENCODERS: Record<string, (text: string) => string> = {
  raw: (text) => text,
  json,
  'ascii json': (text) => ascii(json(text)),
  'json in json': (text) => json(json(text)),
  'json in ascii json': (text) => ascii(json(json(text))),
  'inspected json': (text) => inspect({ json: json(text) }, { maxStringLength: null }),
  'in a list': (text) => inspect([text], { maxStringLength: null, breakLength: Infinity }),
  'a component': (text) => upperHex(encodeURIComponent(text)),
  'a lower component': (text) => lowerHex(encodeURIComponent(text)),
  'an address': encodeURI,
  'a form': (text) => new URLSearchParams({ text }).toString(),
  'a lower form': (text) => lowerHex(new URLSearchParams({ text }).toString()),
  hex: (text) => Buffer.from(text).toString('hex'),
  'upper hex': (text) => Buffer.from(text).toString('hex').toUpperCase(),
  base64: (text) => Buffer.from(text).toString('base64'),
  base64url: (text) => Buffer.from(text).toString('base64url'),
  'base64 in a component': (text) => encodeURIComponent(Buffer.from(text).toString('base64url')),
  'bytes in json': (text) => JSON.stringify(Buffer.from(text)),
}

/** What base64 leaves of a secret when the characters that depend on its neighbours are cut off. */
function insideBase64(secret: string, before: number): string {
  const bits = before * 8
  const whole = Buffer.concat([Buffer.alloc(before), Buffer.from(secret)]).toString('base64')
  return whole.slice(Math.ceil(bits / 6), Math.floor((bits + Buffer.byteLength(secret) * 8) / 6))
}

/** The secret as it must not be found, given the encoder and how many bytes stand before it. */
function traceOf(name: string, secret: string, before: string): string {
  const bytes = Buffer.byteLength(before)
  if (name === 'base64') return insideBase64(secret, bytes)
  if (name.startsWith('base64')) return insideBase64(secret, bytes).replaceAll('+', '-').replaceAll('/', '_')
  if (name.includes('form')) return ENCODERS[name]!(secret).slice('text='.length)
  if (name === 'bytes in json') return Buffer.from(secret).join(',')
  const alone = ENCODERS[name]!(secret.trim())
  // Without what the encoder puts around every text.
  const empty = ENCODERS[name]!('')
  const start = Array.from(empty).findIndex((char, at) => alone[at] !== char)
  const head = start < 0 ? empty.length : start
  return alone.slice(Math.min(head, empty.length / 2), alone.length - Math.floor(empty.length / 2))
}

for (const name of Object.keys(ENCODERS)) {
  test(`a secret is hidden: ${name}`, (t) => {
    fc.assert(
      fc.property(secret, around, around, lengths, (value, before, after, pieces) => {
        const encode = ENCODERS[name]!
        const text = encode(`${before}${value}${after}`)
        const redactor = aRedactor({ value })
        const trace = traceOf(name, value, before)
        assert.ok(trace.length >= 4)
        const { read } = JSON.parse(redactor.json(JSON.stringify({ read: text }))) as { read: string }
        for (const shown of [through(redactor, Buffer.from(text), pieces).toString(), read]) {
          assert.ok(!shown.includes(trace), `${JSON.stringify(trace)} in ${JSON.stringify(shown)}`)
          assert.ok(shown.includes('***'))
        }
      }),
      { numRuns: 300, ...repeatable(t) },
    )
  })
}

test('what is hidden does not depend on how the bytes arrive', (t) => {
  const few = fc.array(fc.stringMatching(/^[ab]{4,9}$/), { minLength: 1, maxLength: 4 })
  fc.assert(
    fc.property(few, fc.stringMatching(/^[abc]{0,200}$/), lengths, (values, text, pieces) => {
      const redactor = aRedactor(Object.fromEntries(values.entries()))
      const whole = through(redactor, Buffer.from(text), [text.length || 1]).toString()
      assert.equal(through(redactor, Buffer.from(text), pieces).toString(), whole)
      assert.equal(redactor.text(text), whole)
      assert.equal(whole, hiddenByHand(text, values))
    }),
    { numRuns: 2_000, ...repeatable(t) },
  )
})

/** The slow way: every occurrence of every value, and stars for what is covered. */
function hiddenByHand(text: string, values: readonly string[]): string {
  const covered = Array.from(text, () => false)
  const starts = new Set<number>()
  for (const value of values) {
    for (let at = text.indexOf(value); at >= 0; at = text.indexOf(value, at + 1)) {
      covered.fill(true, at, at + value.length)
      starts.add(at)
    }
  }
  return Array.from(text, (char, at) => (covered[at] ? (at > 0 && covered[at - 1] ? '' : '***') : char)).join('')
}

test('what holds no secret passes byte for byte', (t) => {
  const bytes = fc.uint8Array({ maxLength: 500 })
  fc.assert(
    fc.property(bytes, lengths, (given, pieces) => {
      const redactor = aRedactor({ value: 'ZZ-nobody-writes-this-by-chance-ZZ' })
      assert.deepEqual(through(redactor, Buffer.from(given), pieces), Buffer.from(given))
    }),
    { numRuns: 500, ...repeatable(t) },
  )
})

test('JSON stays JSON, means the same apart from what is hidden, and holds no secret', (t) => {
  fc.assert(
    fc.property(secret, fc.json({ maxDepth: 3 }), around, (value, other, before) => {
      const redactor = aRedactor({ value })
      assert.deepEqual(JSON.parse(redactor.json(other)), JSON.parse(other))
      const text = JSON.stringify({ [`${before}${value}`]: [other, `${before}${value}`], bytes: Buffer.from(value) })
      for (const written of [text, ascii(text), JSON.stringify(JSON.parse(text), null, 2)]) {
        const read = JSON.parse(redactor.json(written)) as Record<string, unknown>
        assert.ok(!JSON.stringify(read).includes(JSON.stringify(value.trim()).slice(1, -1)))
        assert.equal((read[`${before}***`] as string[] | undefined)?.[0] ?? other, other)
      }
    }),
    { numRuns: 300, ...repeatable(t) },
  )
})
