import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '@windlass/shared/errors.ts'
import { answerText, schemaTrouble } from '../../inputs/judge.ts'

const judged = (schema: unknown, answer: unknown): string => {
  try {
    return answerText(schema === null ? null : JSON.stringify(schema), answer)
  } catch (error) {
    assert.ok(error instanceof Fault, String(error))
    return `${error.code} ${error.detail?.path}`
  }
}

test('an answer that fits comes back as JSON, and without a schema every JSON fits', () => {
  assert.equal(judged(null, { a: [1, null] }), '{"a":[1,null]}')
  assert.equal(judged({}, 'x\u0000'), String.raw`"x\u0000"`)
  assert.equal(judged(true, null), 'null')
  assert.equal(judged(false, null), 'VALIDATION_FAILED answer')
})

test('schemas that people and libraries write are taken as the standard has them', () => {
  const fits: [schema: unknown, good: unknown, bad: unknown, path: string][] = [
    [{ properties: { a: { minimum: 3 } }, required: ['a', 'b'] }, { a: 3, b: 1 }, { a: 2, b: 1 }, 'answer.a'],
    [{ $schema: 'http://json-schema.org/draft-07/schema#', type: 'string' }, 'x', 1, 'answer'],
    [{ type: 'string', 'x-widget': 'area', format: 'colour' }, 'x', 1, 'answer'],
    [{ type: ['string', 'null'] }, null, 1, 'answer'],
    [{ enum: ['yes', 'no'] }, 'yes', 'maybe', 'answer'],
    [{ $ref: '#/$defs/Name', $defs: { Name: { type: 'string', minLength: 2 } } }, 'ab', 'a', 'answer'],
  ]
  for (const [schema, good, bad, path] of fits) {
    assert.equal(schemaTrouble(JSON.stringify(schema)), undefined)
    assert.equal(judged(schema, good), JSON.stringify(good))
    assert.equal(judged(schema, bad), `VALIDATION_FAILED ${path}`)
  }
})

test('a schema that is none is told when it is asked about', () => {
  for (const text of [
    '5',
    '[]',
    '"string"',
    '{"type":"nonsense"}',
    '{"properties":5}',
    '{"pattern":"("}',
    '{"$ref":"#/no"}',
  ]) {
    assert.ok(schemaTrouble(text), text)
    assert.equal(judged(JSON.parse(text), 1), 'VALIDATION_FAILED schema', text)
  }
})

test('a schema that takes for ever holds nobody up', () => {
  const slow = { patternProperties: { '^(a+)+$': { type: 'string' } } }
  const before = performance.now()
  assert.equal(judged(slow, { [`${'a'.repeat(40)}!`]: 1 }), 'VALIDATION_FAILED answer')
  assert.ok(performance.now() - before < 5000)
  assert.match(judged({ $ref: '#' }, 1), /^VALIDATION_FAILED (answer|schema)$/)
})
