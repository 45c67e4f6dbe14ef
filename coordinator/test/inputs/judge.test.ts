import assert from 'node:assert/strict'
import { after, test } from 'node:test'
import { Fault } from '@windlass/shared/errors.ts'
import type { OrgId } from '@windlass/shared/ids.ts'
import { createLog } from '@windlass/shared/log.ts'
import { answerText, questionTrouble } from '../../engine/commit/judge-answer.ts'
import { createJudge } from '../../judging/judge.ts'
import { DEFAULT_SIZES } from '../../sizes.ts'

const judge = createJudge({ log: createLog({ process: 'test' }, 'error') })
after(() => judge.close())

const orgId = 'org_1' as OrgId

async function judged(schema: unknown, answer: unknown): Promise<string> {
  try {
    return await answerText(
      { judge, config: DEFAULT_SIZES },
      orgId,
      schema === null ? null : JSON.stringify(schema),
      answer,
    )
  } catch (error) {
    assert.ok(error instanceof Fault, String(error))
    return `${error.code} ${String(error.detail?.['path'])}`
  }
}

async function trouble(schemaText: string, onTimeoutText: string | null = null): Promise<string | undefined> {
  const asker = { orgId, payer: { run: 'run_1', epoch: 1, assertHeld: async () => {} } }
  return (await questionTrouble({ judge }, asker, { schemaText, onTimeoutText }))?.message
}

test('an answer that fits comes back as JSON, and without a schema every JSON fits', async () => {
  assert.equal(await judged(null, { a: [1, null] }), '{"a":[1,null]}')
  assert.equal(await judged({}, 'x\u0000'), String.raw`"x\u0000"`)
  assert.equal(await judged(true, null), 'null')
  assert.equal(await judged(false, null), 'VALIDATION_FAILED answer')
})

test('schemas that people and libraries write are taken as the standard has them', async () => {
  const fits: [schema: unknown, good: unknown, bad: unknown, path: string][] = [
    [{ properties: { a: { minimum: 3 } }, required: ['a', 'b'] }, { a: 3, b: 1 }, { a: 2, b: 1 }, 'answer.a'],
    [{ $schema: 'http://json-schema.org/draft-07/schema#', type: 'string' }, 'x', 1, 'answer'],
    [{ type: 'string', 'x-widget': 'area', format: 'colour' }, 'x', 1, 'answer'],
    [{ type: ['string', 'null'] }, null, 1, 'answer'],
    [{ enum: ['yes', 'no'] }, 'yes', 'maybe', 'answer'],
    [{ $ref: '#/$defs/Name', $defs: { Name: { type: 'string', minLength: 2 } } }, 'ab', 'a', 'answer'],
  ]
  for (const [schema, good, bad, path] of fits) {
    assert.equal(await trouble(JSON.stringify(schema)), undefined)
    assert.equal(await judged(schema, good), JSON.stringify(good))
    assert.equal(await judged(schema, bad), `VALIDATION_FAILED ${path}`)
  }
})

test('a schema that is none is told when it is asked about', async () => {
  for (const text of [
    '5',
    '[]',
    '"string"',
    '{"type":"nonsense"}',
    '{"properties":5}',
    '{"pattern":"("}',
    '{"$ref":"#/no"}',
  ]) {
    assert.match((await trouble(text)) ?? '', /^The schema of the question cannot be used: /, text)
    assert.equal(await judged(JSON.parse(text), 1), 'VALIDATION_FAILED schema', text)
  }
})

test('a schema that takes for ever holds nobody up', async () => {
  const slow = { patternProperties: { '^(a+)+$': { type: 'string' } } }
  // Left alone it would take hours.
  assert.equal(await judged(slow, { [`${'a'.repeat(40)}!`]: 1 }), 'VALIDATION_FAILED answer')
  assert.match(await judged({ $ref: '#' }, 1), /^VALIDATION_FAILED (answer|schema)$/)
})

test('an answer for the case that time is up has to fit, and one that takes for ever does not', async () => {
  const schema = JSON.stringify({ type: 'string', pattern: '^(a|a)*$' })
  assert.equal(await trouble(schema, '"aaa"'), undefined)
  assert.match(
    (await trouble(schema, '5')) ?? '',
    /^onTimeout.answer does not fit the schema. answer: must be a string/,
  )
  assert.match((await trouble(schema, `"${'a'.repeat(60)}b"`)) ?? '', /^onTimeout.answer .* takes longer than 250 ms/)
})
