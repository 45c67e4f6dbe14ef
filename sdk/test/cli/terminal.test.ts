import assert from 'node:assert/strict'
import { test } from 'node:test'
import { stripVTControlCharacters } from 'node:util'
import { LINE_BREAK } from '@windlass/shared/line-break.ts'
import { sampleOf, schemaText } from '../../cli/schema-text.ts'
import { behindBar, bytesText, jsonForEyes, lengthText, safe, safeLines } from '../../cli/terminal.ts'

const terminal = { isTTY: true } as NodeJS.WriteStream
const pipe = { isTTY: false } as NodeJS.WriteStream

test('what a program prints cannot move the cursor, rename the window or hide text', () => {
  const hostile = 'a\u001b[2Jb\u001b]0;title\u0007c\rd\u009be\u001bcf\tg\u001b[1;31mred'
  assert.equal(stripVTControlCharacters(safe(hostile, terminal)), 'abcdef\tgred')
  const written = hostile.replace('\r', '')
  assert.equal(safe(written, pipe), written)
})

test('for a pipe, what follows a line break in a text of others begins no line', () => {
  const forged = '::error::forged'
  for (const breaks of ['\n', '\r', '\r\n', '\n\n', '\v', '\f', '\u001c', '\u0085', '\u2028', '\u2029']) {
    const lines = safe(`a${breaks}${forged}${breaks}`, pipe).split(LINE_BREAK)
    assert.deepEqual([lines[0], lines.filter((line) => line.includes(forged))], ['a', [`  │ ${forged}`]])
    for (const line of lines.slice(1)) assert.match(line, /^ {2}│ /)
    assert.equal(behindBar(`a${breaks}${forged}`, terminal), `a${breaks}${forged}`)
  }
  assert.equal(safe('one line\t\u001b[31m as it is\n', pipe), 'one line\t\u001b[31m as it is')
})

test('colours stay, but for what hides the text behind them', () => {
  const esc = (codes: string) => `\u001b[${codes}m`
  const cases = [
    [esc('8'), ''],
    [esc('1;8;31'), esc('1;31')],
    [esc('38;5;8'), esc('38;5;8')],
    [esc('48;2;8;88;8;008'), esc('48;2;8;88;8')],
    [esc(''), esc('')],
  ] as const
  for (const [said, shown] of cases) assert.equal(safe(`${said}a`, terminal), `${shown}a${esc('0')}`)
  assert.equal(safe('a\u200eb\u200fc\u061cd', terminal), 'abcd')
})

test('a text in the colour of its ground, or of the terminal, has the default colours', () => {
  const esc = (codes: string) => `\u001b[${codes}m`
  const plain = esc('39;49')
  const hidden = ['30;40', '40;30', '37;47', '97;107', '31;41', '38;5;16;40', '30;48;5;232', '38;2;1;2;3;48;2;3;2;1']
  const alone = ['30', '40', '37', '97', '107', '38;5;0', '38;5;16', '38;2;0;0;0', '38;2;255;255;250', '48;5;255']
  for (const codes of [...hidden, ...alone])
    assert.equal(safe(`${esc(codes)}a`, terminal), `${plain}a${esc('0')}`, codes)
  const shown = ['30;47', '97;41', '90', '31', '44', '93', '38;5;208', '48;5;22;38;5;255', '1;4', '58;5;0', '30;40;0']
  for (const codes of shown) assert.equal(safe(`${esc(codes)}a`, terminal), `${esc(codes)}a${esc('0')}`, codes)
  const apart = `${esc('1;30')}a${esc('40')}b${esc('47')}c${esc('30;47;4')}d${esc('49')}e${esc('')}f`
  const seen = `${esc('1;39;49')}a${plain}b${esc('30;47')}c${esc('30;47;4')}d${plain}e${esc('0;39;49')}f${esc('0')}`
  assert.equal(safe(apart, terminal), seen)
  for (const none of ['9'.repeat(400), '38;5;300', '38;5', '38', '48;2;1;2', '38;2;1;2;256'])
    assert.equal(safe(esc(none), terminal), esc('0'))
})

test('nor can what a service says, in an error or in JSON, and neither turns the order of letters around', () => {
  const hostile = 'a\u001b[2Jb\u009bc\u202ed\u2066e'
  assert.equal(safeLines(`${hostile}\n\tNext: f`, terminal), 'abcde\n\tNext: f')
  assert.equal(safeLines(hostile, pipe), hostile)
  const shown = jsonForEyes({ hostile })
  // oxlint-disable-next-line no-control-regex -- it is what is looked for
  assert.doesNotMatch(shown, /[\u001b\u007f-\u009f\u202a-\u202e\u2066-\u2069]/)
  assert.deepEqual(JSON.parse(shown), { hostile })
})

test('lengths and sizes are told in the unit that fits', () => {
  assert.deepEqual([0, 999, 1_000, 59_000, 61_000, 3_660_000].map(lengthText), [
    '0 ms',
    '999 ms',
    '1.0 s',
    '59 s',
    '1 min 1 s',
    '1 h 1 min',
  ])
  assert.deepEqual([999, 1_500, 2_000_000].map(bytesText), ['999 B', '1.5 kB', '2.0 MB'])
})

test('a schema is told in the words of TypeScript', () => {
  const schema = {
    type: 'object',
    properties: {
      how: { enum: ['throw', 'exit'] },
      many: { type: 'array', items: { type: ['string', 'null'] } },
      map: { type: 'object', additionalProperties: { type: 'number' } },
      next: { $ref: '#/$defs/Node' },
      'a-b': {},
      deep: {
        type: 'object',
        properties: { a: { type: 'object', properties: { b: { type: 'object', properties: { c: {} } } } } },
      },
    },
    required: ['how'],
  }
  const text =
    '{ how: "throw" | "exit"; many?: (string | null)[]; map?: Record<string, number>; next?: Node; ' +
    '"a-b"?: any; deep?: { a?: { b?: { … } } } }'
  assert.equal(schemaText(schema), text)
})

test('a schema gives an input to begin with, of what is required', () => {
  const person = {
    type: 'object',
    properties: { name: { type: 'string' }, age: { type: 'number' } },
    required: ['name'],
  }
  const schema = {
    type: 'object',
    properties: { who: { type: 'array', items: { $ref: '#/$defs/Person' } }, how: { enum: ['mail', 'call'] }, why: {} },
    required: ['who', 'how'],
    $defs: { Person: person },
  }
  assert.deepEqual(sampleOf(schema), { who: [{ name: '…' }], how: 'mail' })
  assert.equal(sampleOf({}), undefined)
  const endless = { $ref: '#/$defs/Node', $defs: { Node: { type: 'array', items: { $ref: '#/$defs/Node' } } } }
  assert.match(JSON.stringify(sampleOf(endless)), /^\[+(null)?\]+$/)
})

test('schemas that are a boolean, in any place, are shown, and what cannot be read takes anything', () => {
  const nested = { type: 'object', properties: { x: true, y: { anyOf: [false, { type: 'string' }] } }, required: ['x'] }
  const cases: [schema: object | boolean, text: string, sample: unknown][] = [
    [true, 'any', undefined],
    [false, 'never', undefined],
    [nested, '{ x: any; y?: never | string }', { x: null }],
    [{ anyOf: [true] }, 'any', undefined],
    [{ type: 'array', prefixItems: [true, false], items: true }, '[any, never]', []],
    [{ type: 'array', items: false }, 'any[]', []],
    [{ type: 'object', additionalProperties: true }, 'object', {}],
    [{ $ref: '#/$defs/any', $defs: { any: true } }, 'any', undefined],
    [{ $ref: '#/$defs/constructor', $defs: {} }, 'constructor', undefined],
    [{ $ref: 7, anyOf: null, properties: { x: null } }, 'any', undefined],
  ]
  for (const [schema, text, sample] of cases)
    assert.deepEqual([schemaText(schema), sampleOf(schema)], [text, sample], JSON.stringify(schema))
})

test('a schema that is deep, or grows by its definitions, costs no more than others', () => {
  const text = `${'{"anyOf":['.repeat(100_000)}true${']}'.repeat(100_000)}`
  assert.equal(schemaText(JSON.parse(text) as object), 'any')
  assert.equal(sampleOf(JSON.parse(text) as object), undefined)
  const names = Array.from({ length: 300 }, (_, at) => `a${at}`)
  const properties = Object.fromEntries(names.map((name) => [name, { $ref: '#/$defs/All' }]))
  const all = { type: 'object', properties, required: names }
  assert.equal(sampleOf({ ...all, $defs: { All: all } }), undefined)
})
