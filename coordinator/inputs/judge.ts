import { Fault } from '@windlass/shared/errors.ts'
import type { JsonSchema } from '../workflows/json-schema.ts'
import { type Invalid, type Validator, validatorOfWritten } from '../workflows/validate.ts'

/** 1 MiB as JSON. */
const ANSWER_BYTES = 1024 * 1024

/**
 * Why nobody could ever answer under this schema; undefined when somebody can. To be asked when the question is put, while the
 * program can still be told.
 */
export function schemaTrouble(schemaText: string | null): string | undefined {
  try {
    readSchema(schemaText)
    return undefined
  } catch (error) {
    return reasonOf(error)
  }
}

/** Why this question cannot be asked: its schema is none, or the answer for the case that time is up does not fit it. */
export function questionTrouble(schemaText: string | null, onTimeoutText: string | null): string | undefined {
  const trouble = schemaTrouble(schemaText)
  if (trouble !== undefined) return `The schema of the question cannot be used: ${trouble}`
  if (onTimeoutText === null) return undefined
  const invalid = misfit(schemaText, JSON.parse(onTimeoutText))
  return invalid ? `onTimeout.answer does not fit the schema. ${invalid.path}: ${invalid.message}` : undefined
}

function readSchema(schemaText: string | null): Validator | undefined {
  if (schemaText === null) return undefined
  const schema = JSON.parse(schemaText) as unknown
  const isSchema =
    typeof schema === 'boolean' || (typeof schema === 'object' && schema !== null && !Array.isArray(schema))
  if (!isSchema) throw new Error('a JSON Schema is an object or a boolean')
  return validatorOfWritten(schema as JsonSchema | boolean)
}

/** The answer as JSON text, when it fits the question. */
export function answerText(schemaText: string | null, answer: unknown): string {
  if (answer === undefined)
    throw new Fault('VALIDATION_FAILED', { path: 'answer' }, 'answer: is required; null is an answer too.')
  const text = JSON.stringify(answer)
  const bytes = Buffer.byteLength(text)
  if (bytes > ANSWER_BYTES)
    throw new Fault(
      'PAYLOAD_TOO_LARGE',
      { path: 'answer', bytes, limitBytes: ANSWER_BYTES },
      `The answer has ${bytes} bytes as JSON; a question takes ${ANSWER_BYTES}.`,
    )
  const invalid = misfit(schemaText, answer)
  if (!invalid) return text
  throw new Fault(
    'VALIDATION_FAILED',
    { path: invalid.path },
    `The answer does not fit the schema of the question. ${invalid.path}: ${invalid.message}`,
  )
}

/** Schemas are looked at when the question is asked; what is found out only now, such as one that refers to itself, is no answer's fault. */
function misfit(schemaText: string | null, answer: unknown): Invalid | null | undefined {
  try {
    return readSchema(schemaText)?.(answer, 'answer')
  } catch (error) {
    throw new Fault(
      'VALIDATION_FAILED',
      { path: 'schema' },
      `The question's own schema cannot be used, so nobody can answer it: ${reasonOf(error)}. Correct it in the program, and cancel this run.`,
    )
  }
}

function reasonOf(error: unknown): string {
  return error instanceof Error ? error.message : String(error)
}
