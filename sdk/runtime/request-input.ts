import { waitsFor } from './bridge.ts'
import { millisecondsOf, type Duration } from './duration.ts'
import type { FromSchema, JsonSchema } from './from-schema.ts'
import { jsonText, MOST_LEVELS, nestsTooDeep } from './json-text.ts'
import { reviveError } from './wait-errors.ts'

const PROMPT_CHARACTERS = 10_000
const SCHEMA_CHARACTERS = 16 * 1024
const ANSWER_CHARACTERS = 1024 * 1024

/** A question to people. */
export interface InputRequest<Schema, Answer> {
  /** What they read: 1 to 10,000 characters. */
  prompt: string
  /** JSON Schema of the answer, at most 16 KiB of JSON; other answers are refused. Any JSON will do without it. */
  schema?: Schema
  /** How long an answer is waited for. Without it: for as long as the run may last. */
  timeout?: Duration
  /**
   * When time is up: `'throw'` an `InputTimedOutError` (which is what happens when nothing is said), or go on with an
   * answer.
   */
  onTimeout?: 'throw' | { answer: Answer }
}

/**
 * Asks people and waits for the answer, which comes from the CLI, the API or a tool. The run is `awaiting_input`
 * meanwhile as far as nothing else of it goes on, takes no slot and survives the loss of its machine. The first answer
 * that fits counts.
 *
 * With a `schema` that is written out in place the answer has its type; else name the type:
 * `requestInput<{ ok: boolean }>(…)`.
 *
 * @throws InputTimedOutError when nobody has answered within `timeout`
 * @example
 * import { requestInput } from 'windlass'
 *
 * export async function run(input: { amount: number }) {
 *   const answer = await requestInput({
 *     prompt: `May ${input.amount} € be paid?`,
 *     schema: {
 *       type: 'object',
 *       properties: { approve: { type: 'boolean' }, note: { type: 'string' } },
 *       required: ['approve'],
 *     },
 *     timeout: '2d',
 *     onTimeout: { answer: { approve: false } },
 *   })
 *   return answer.approve ? 'paid' : (answer.note ?? 'refused')
 * }
 */
export function requestInput<Answer = unknown>(
  request: InputRequest<SchemaFor<Answer>, NoInfer<Answer>>,
): Promise<Answer>
/** With a schema that is written out in place: the answer has its type, and so has that of `onTimeout`. */
// The last one, as compilers tell of that one what does not fit.
export function requestInput<const Schema extends JsonSchema | undefined>(
  request: InputRequest<Schema, FromSchema<Schema>>,
): Promise<FromSchema<Schema>>
export function requestInput(request: InputRequest<JsonSchema, unknown>): Promise<unknown> {
  const ask = askOf(request)
  const waits = waitsFor('requestInput()')
  if (!waits) {
    throw new Error(
      'requestInput() was called outside of a run, where nobody can answer. In a unit test put an answer in its ' +
        "place: mock.module('windlass', { namedExports: { …, requestInput: async () => ({ approve: true }) } }).",
    )
  }
  return waits.wait({ kind: 'input', name: ask.prompt, args: request, ask, toError: reviveError })
}

/** Where no type is named, the schema tells it: then nothing may pass as an answer that does not fit the schema. */
type SchemaFor<Answer> = IsAny<Answer> extends true ? JsonSchema : unknown extends Answer ? never : JsonSchema
type IsAny<T> = 0 extends 1 & T ? true : false

function askOf({ prompt, schema, timeout, onTimeout = 'throw' }: InputRequest<JsonSchema, unknown>) {
  // PostgreSQL keeps neither NUL nor half a character.
  const clean = typeof prompt === 'string' ? prompt.replaceAll('\0', '').toWellFormed() : ''
  if (clean === '' || clean.length > PROMPT_CHARACTERS) {
    throw new TypeError(`requestInput({ prompt }): prompt is a text of 1 to ${PROMPT_CHARACTERS} characters.`)
  }
  const isAnswer = typeof onTimeout === 'object' && onTimeout !== null && 'answer' in onTimeout
  if (onTimeout !== 'throw' && !isAnswer) {
    throw new TypeError("requestInput({ onTimeout }): write 'throw' or { answer: … }.")
  }
  return {
    for: 'input' as const,
    prompt: clean,
    schemaText: schema === undefined ? null : textOf('schema', schema, SCHEMA_CHARACTERS),
    timeoutMs: timeout === undefined ? null : millisecondsOf('requestInput({ timeout })', timeout),
    onTimeoutText: isAnswer ? textOf('onTimeout.answer', onTimeout.answer, ANSWER_CHARACTERS) : null,
  }
}

function textOf(field: string, value: unknown, most: number): string {
  const text = jsonText(value)
  if (typeof text !== 'string') {
    throw new TypeError(
      `requestInput({ ${field} }): it is not JSON. Leave out functions, bigints and circular references.`,
    )
  }
  if (text.length > most) {
    throw new TypeError(`requestInput({ ${field} }): it has ${text.length} characters as JSON, ${most} at most.`)
  }
  if (nestsTooDeep(text)) {
    throw new TypeError(`requestInput({ ${field} }): it nests deeper than ${MOST_LEVELS} levels.`)
  }
  return text
}
