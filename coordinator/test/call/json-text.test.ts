import assert from 'node:assert/strict'
import { mock, test } from 'node:test'
import { findTrouble, troubleOf } from '../../call/json-text.ts'

const VALID = '{"a":[1,-2.5e+3,true,null,"x\\u00e9\\n\\"",{}],"b":{"c":[[]]} , "":false}'

function parses(text: string): boolean {
  try {
    JSON.parse(text)
    return true
  } catch (error) {
    assert.ok(error instanceof SyntaxError)
    return false
  }
}

test('trouble is found where it is', () => {
  const cases: [text: string, offset: number, expected: RegExp][] = [
    ['', 0, /a value/],
    ['{"a":1,}', 7, /quoted name/],
    ["{'a':1}", 1, /quoted name or `}`/],
    ['[1 2]', 3, /`,` or the closing bracket/],
    ['[1,]', 3, /a value/],
    ['{"a" 1}', 5, /`:`/],
    ['{"a":undefined}', 5, /a value/],
    ['{"a":"b', 7, /closing quote/],
    ['{"a":"b\nc"}', 7, /control characters/],
    ['{"a":"\\x"}', 6, /escape/],
    ['{} {}', 3, /nothing more/],
    ['{"a":01}', 6, /closing bracket/],
    ['[}', 1, /a value or `]`/],
    ['\ufeff{}', 0, /a value/],
  ]
  for (const [text, offset, expected] of cases) {
    assert.equal(parses(text), false, text)
    const trouble = findTrouble(text)
    assert.equal(trouble.offset, offset, text)
    assert.match(trouble.message, expected, text)
  }
})

test('what comes before the trouble is the start of some valid text: no change of a character fools it', () => {
  for (let at = 0; at < VALID.length; at++) {
    for (const char of ['', ',', '"', '}', ']', '1', '\\', 'x', '\u0001']) {
      const text = VALID.slice(0, at) + char + VALID.slice(at + 1)
      const { offset } = findTrouble(text)
      if (parses(text)) assert.equal(offset, text.length, text)
      else assert.ok(offset >= at - 5 && offset <= text.length, `${text}: ${offset}`)
    }
  }
})

test('line and column count from one', () => {
  const locationIn = (text: string) => {
    const { line, column } = findTrouble(text)
    return [line, column]
  }
  assert.deepEqual(locationIn('{\n  "a": x\n}'), [2, 8])
  assert.deepEqual(locationIn('x\n\n'), [1, 1])
  assert.deepEqual(locationIn('[\r\n\n'), [3, 1])
})

test('a body of line ends is counted without a list of its lines', () => {
  const lists = mock.method(String.prototype, 'split')
  const { line, column } = findTrouble(`${'\n'.repeat(1_000_000)}x`)
  const calls = lists.mock.callCount()
  lists.mock.restore()
  assert.deepEqual({ line, column, calls }, { line: 1_000_001, column: 1, calls: 0 })
})

test('a million brackets are no trouble for the stack', () => {
  assert.equal(findTrouble('['.repeat(1_000_000)).offset, 1_000_000)
})

test('a large body is not searched: what the parser says of it counts, without what stands there', () => {
  const long = 'secret'.repeat(500_000)
  const said = (text: string) => {
    try {
      JSON.parse(text)
    } catch (error) {
      return troubleOf(text, error)
    }
    throw new Error('it is JSON')
  }
  assert.deepEqual(said(`{"a":"${long}"x`), {
    message: ": Expected ',' or '}' after property value at line 1, column 3000008",
    location: { offset: 3_000_007, line: 1, column: 3_000_008 },
  })
  assert.deepEqual(said(`["${long}",`), { message: ': it ends too early', location: {} })
  assert.deepEqual(said(`["${long}",x]`), { message: ', and too long for the place to be told', location: {} })
})
