import assert from 'node:assert/strict'
import { test } from 'node:test'
import { inspect } from 'node:util'
import { aRedactor, redactorOf, through } from '../../_kit/a-redactor.ts'

const KEY =
  '-----BEGIN PRIVATE KEY-----\nMIIEvQIBADANBgkqhkiG9w0BAQ\nkqhkiG9w0BAQEFAASCBKcw\nQ==\n-----END PRIVATE KEY-----\n'

test('of a value of several lines each line is hidden by itself, indented and without line breaks too', () => {
  const redactor = aRedactor({ KEY })
  for (const line of KEY.trim()
    .split('\n')
    .filter((line) => line.length >= 4)) {
    assert.equal(redactor.text(`key:   ${line} .`), 'key:   *** .')
  }
  assert.equal(
    redactor.text(KEY.replaceAll('\n', '\r\n    ')),
    '***\r\n    ***\r\n    ***\r\n    Q==\r\n    ***\r\n    ',
  )
  assert.equal(redactor.text(KEY), '***\n')
  assert.equal(redactor.text(JSON.stringify({ KEY })), '{"KEY":"***\\n"}')
})

test('base64 in lines of 64 or 76 characters is hidden', () => {
  const redactor = aRedactor({ KEY })
  const base64 = Buffer.from(KEY).toString('base64')
  for (const width of [64, 76]) {
    const wrapped = base64.replace(new RegExp(`.{${width}}`, 'g'), '$&\n')
    assert.match(redactor.text(wrapped), /^[*\n]+$/)
  }
})

test('a buffer is hidden as Node shows it, and as the bytes that JSON makes of it', () => {
  const redactor = aRedactor({ value: 'correct horse' })
  const buffer = Buffer.from('correct horse')
  assert.equal(redactor.text(inspect(buffer)), '<Buffer ***>')
  assert.equal(redactor.json(JSON.stringify({ buffer })), '{"buffer":{"type":"Buffer","data":["***"]}}')
  assert.equal(redactor.text(JSON.stringify(buffer)), '{"type":"Buffer","data":[***]}')
  // Numbers that only look like it at their edges stay whole.
  const beside = JSON.stringify({ list: [1991, ...buffer.subarray(1), 2101] })
  assert.equal(redactor.json(beside), beside)
})

test('user and password of an address and of a header are hidden', () => {
  const redactor = aRedactor({ password: 'p@ss/w:rd' })
  const url = new URL('https://example.test/x')
  url.username = 'me'
  url.password = 'p@ss/w:rd'
  assert.equal(redactor.text(String(url)), 'https://me:***@example.test/x')
  const basic = Buffer.from('me:p@ss/w:rd').toString('base64')
  assert.match(redactor.text(`Basic ${basic}`), /^Basic bWU6\*\*\*\w{0,2}=*$/)
})

test('keys and numbers of JSON are hidden, and what is JSON stays JSON', () => {
  const redactor = aRedactor({ pin: '428571' })
  const json = '{"428571": [428571, -428571.5e1, true, null, 1.50], "\\u0034\\u0032\\u0038571": "a\\n"}'
  assert.equal(redactor.json(json), '{"***": ["***", "***", true, null, 1.50], "***": "a\\n"}')
  assert.equal(redactor.json('no JSON: 428571'), 'no JSON: ***')
})

test('words of JSON are no secrets, whatever the secrets are', () => {
  assert.equal(aRedactor({ flag: 'true' }).json('[true,"true",null]'), '[true,"***",null]')
})

test('what touches becomes one, and its parts are not told apart', () => {
  const redactor = aRedactor({ one: 'abcd', other: 'cdef', third: 'wxyz' })
  assert.equal(redactor.text('-abcdefwxyz-'), '-***-')
  assert.equal(redactor.text('-abcd-wxyz-'), '-***-***-')
})

test('values that are too short are named, not hidden', () => {
  const redactor = redactorOf(
    new Map([
      ['PIN', new Set(['123'])],
      ['LONG', new Set(['1234'])],
      ['BLANK', new Set(['  \n '])],
    ]),
  )
  assert.deepEqual(redactor.tooShort, ['PIN', 'BLANK'])
  assert.equal(redactor.text('123 1234'), '123 ***')
  assert.equal(aRedactor({ PIN: '123' }).text('123 MTIz 313233'), '123 MTIz 313233')
})

test('the beginning of a secret that was cut off is hidden, any other beginning is not', () => {
  const redactor = aRedactor({ value: 'correct horse battery' })
  assert.equal(redactor.text('failed: correct hor…'), 'failed: ***…')
  assert.equal(redactor.text('requestInput("correct h…) at index.ts:1:1'), 'requestInput("***…) at index.ts:1:1')
  assert.equal(redactor.text('failed: correct hor', true), 'failed: ***')
  assert.equal(redactor.text('failed: correct hor'), 'failed: correct hor')
  assert.equal(redactor.text('co…'), 'co…')
})

test('all values that a name has had are hidden', () => {
  const redactor = redactorOf(new Map([['KEY', new Set(['before-rotation', 'after-rotation'])]]))
  assert.equal(redactor.text('before-rotation after-rotation'), '*** ***')
})

test('of a long secret all is hidden, whichever way it is written', () => {
  // Of an odd length, so that pieces of a length that is even begin at each of its characters.
  const value = `<${'🌊\'é"\\/ %+日a'.repeat(1_500)}>`
  const redactor = aRedactor({ value })
  const json = JSON.stringify(value)
  for (const written of [
    json,
    JSON.stringify(json),
    encodeURI(value),
    encodeURIComponent(value),
    inspect(value, { maxStringLength: null }),
    `https://user:${Object.assign(new URL('http://host'), { password: value }).password}@host`,
    new URLSearchParams({ value }).toString(),
    value.replaceAll("'", String.raw`'\''`),
  ]) {
    const shown = redactor.text(written)
    assert.ok(/^[^*]{0,13}\*\*\*[^*]{0,5}$/.test(shown), shown.slice(0, 100))
  }
})

test('nothing is kept back that cannot become a secret, and no more than may', () => {
  const stream = aRedactor({ value: 'correct horse' }).stream()
  assert.equal(stream.push(Buffer.from('is it correct')).toString(), 'is it ')
  assert.equal(stream.heldBytes, 'correct'.length)
  assert.equal(stream.push(Buffer.from('ly said? corr')).toString(), 'correctly said? ')
  assert.equal(stream.push(Buffer.from('ect ')).toString(), '')
  assert.equal(stream.push(Buffer.from('horse.')).toString(), '***.')
  assert.equal(stream.push(Buffer.from('correct')).toString(), '')
  assert.equal(stream.end().toString(), 'correct')
})

test('a secret that comes byte by byte is hidden, in a text of many', () => {
  const redactor = aRedactor({ value: 'correct horse', long: 'x1y2'.repeat(4_000) })
  const text = `a correct horse and ${'x1y2'.repeat(4_000)}. `.repeat(3)
  assert.equal(through(redactor, Buffer.from(text), [1]).toString(), 'a *** and ***. '.repeat(3))
})

test('the largest secrets take seconds at most to be looked for, and none of them is missed', () => {
  const lines = Array.from({ length: 1_000 }, (_, n) => `line ${n} "of" a/large+file=`)
  const large = lines.join('\n')
  const redactor = aRedactor({ large, other: Buffer.from(large).toString('base64').slice(0, 60_000) })
  assert.equal(redactor.text(lines.join('|')), lines.map(() => '***').join('|'))
  assert.equal(redactor.text(Buffer.from(large).toString('hex')), '***')
})

test('what Node shows of a long one within an object is hidden', () => {
  const value = 'Zq9"'.repeat(4000)
  const redactor = aRedactor({ value })
  assert.match(redactor.text(inspect({ value })), /^\{\s+value: '\*\*\*'\.\.\. 6000 more characters\s+\}$/)
  const bytes = Buffer.from(inspect([value]))
  assert.match(through(redactor, bytes, [1000]).toString(), /^\[\s+'\*\*\*'\.\.\. 6000 more characters\s+\]$/)
})

test('the beginning of a long one is hidden wherever it was cut off, and one may hold the mark of a cut', () => {
  const redactor = aRedactor({ value: 'Zq9"'.repeat(6000), marked: 'left-side…right-side' })
  for (const length of [9_999, 10_000, 10_001, 20_000])
    assert.equal(redactor.text(`no ${'Zq9"'.repeat(6000).slice(0, length)}… at x`), 'no ***… at x')
  assert.equal(redactor.text('a left-side…right-side b'), 'a *** b')
  assert.equal(redactor.text('a left-side…right b'), 'a ***…right b')
  assert.equal(redactor.text('a left-side…right', true), 'a ***')
})
