import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { Client } from 'windlass/client'
import type { Client as Published } from '../../../sdk/types/client.d.ts'
import type { table } from '../../../sdk/client/table.ts'
import { outOfDate, sdkTypes } from '../../tools/sdk-types.ts'
import { flatten } from '../../tools/sdk-types/flatten.ts'
import { typeText } from '../../tools/sdk-types/type-text.ts'
import { PROJECT } from '../../tools/source-files.ts'

type Table = typeof table
type AnyCall = (...args: never[]) => unknown
/** `true`, or the name of a call whose published types say something else than its row. */
type Fits<Own, Other, Name> = Own extends AnyCall
  ? Other extends AnyCall
    ? [Parameters<Other>, ReturnType<Own>] extends [Parameters<Own>, ReturnType<Other>]
      ? true
      : Name
    : Name
  : Name
type Verdicts = {
  [Group in keyof Table]: {
    [Name in keyof Table[Group] & keyof Client[Group] & keyof Published[Group]]: Fits<
      Client[Group][Name],
      Published[Group][Name],
      Name
    >
  }[keyof Table[Group] & keyof Client[Group] & keyof Published[Group]]
}[keyof Table]

test('the table and the declarations are those of today', () => {
  assert.deepEqual(outOfDate(), [])
})

test('what the published types let in the rows take, and what rows answer the published types say', () => {
  // The compiler is the one that tests it.
  const verdict: Verdicts = true
  assert.ok(verdict)
})

test('the declarations name no other package than Node’s types', () => {
  for (const [file, text] of Object.entries(sdkTypes())) {
    if (!file.endsWith('.d.ts')) continue
    assert.doesNotMatch(text, /^(import|export)\b.*\bfrom\b/m, file)
    assert.doesNotMatch(text, /\bimport\(/, file)
    assert.deepEqual(text.match(/^\/\/\/ .*$/gm), ['/// <reference types="node" />'], file)
  }
})

test('a schema is printed as the type of what it lets through', () => {
  const schema = {
    type: 'object',
    properties: { id: { type: 'string' }, more: { anyOf: [{ $ref: '#/$defs/Run' }, { type: 'null' }] } },
    required: ['id'],
  }
  assert.equal(typeText(schema), '{\nid: string\nmore?: Run | null\n}')
  assert.equal(typeText({ type: 'array', items: { enum: ['a', 1] } }), 'Array<"a" | 1>')
  assert.equal(typeText({ type: 'object', additionalProperties: { type: 'integer' } }), 'Record<string, number>')
  assert.equal(typeText({}), 'unknown')
})

test('a name that a file does not have is refused', () => {
  assert.throws(() => flatten(PROJECT, { 'sdk/runtime/step.ts': ['nothing'] }), /declares no nothing/)
})
