import { Fault } from '@windlass/shared/errors.ts'
import type { OrgId } from '@windlass/shared/ids.ts'
import type { Config } from '../../config.ts'
import type { Judge, Payer, Verdict } from '../../judging/judge.ts'
import { type Schema, schemaOf } from '../../judging/schema.ts'
import type { JsonSchema } from '../../workflows/json-schema.ts'

type JudgeDeps = { judge: Judge }
/** The run that asks the question. */
type Asker = { orgId: OrgId; payer: Payer }
type Question = { schemaText: string | null; onTimeoutText: string | null }

/**
 * Why this question cannot be asked: nobody could ever answer under its schema, or the answer for the case that time is
 * up does not fit it. To be asked when the question is put, while the program can still be told. `isSpent`: the run has
 * used up its time for such things, and nobody knows.
 */
export async function questionTrouble(
  deps: JudgeDeps,
  { orgId: org, payer }: Asker,
  { schemaText, onTimeoutText }: Question,
): Promise<{ message: string; isSpent: boolean } | undefined> {
  const unusable = (why: string) => ({ message: `The schema of the question cannot be used: ${why}`, isSpent: false })
  const schema = readSchema(schemaText)
  if (typeof schema === 'string') return unusable(schema)
  const ask = { org, ...payer, isPatient: true }
  const verdict =
    onTimeoutText === null
      ? await deps.judge.tryOut(schema, ask)
      : await deps.judge.judge(schema, { text: onTimeoutText }, { ...ask, root: 'answer' })
  if (verdict.is === 'fits') return undefined
  const { path, message } = verdict.invalid
  if (verdict.is === 'unusable') return unusable(message)
  if (verdict.is === 'spent') return { message: `The question ${message}`, isSpent: true }
  return { message: `onTimeout.answer does not fit the schema. ${path}: ${message}`, isSpent: false }
}

/** Returns the schema, or a sentence that says why it is none. */
function readSchema(schemaText: string | null): Schema | undefined | string {
  if (schemaText === null) return undefined
  const schema = JSON.parse(schemaText) as unknown
  const isSchema =
    typeof schema === 'boolean' || (typeof schema === 'object' && schema !== null && !Array.isArray(schema))
  return isSchema ? schemaOf('written', schema as JsonSchema | boolean) : 'a JSON Schema is an object or a boolean'
}

/** The answer as JSON text, when it fits the question. */
export async function answerText(
  deps: JudgeDeps & { config: Pick<Config, 'maxAnswerBytes'> },
  org: OrgId,
  schemaText: string | null,
  answer: unknown,
): Promise<string> {
  if (answer === undefined)
    throw new Fault('VALIDATION_FAILED', { path: 'answer' }, 'answer: is required; null is an answer too.')
  const text = JSON.stringify(answer)
  const bytes = Buffer.byteLength(text)
  const limitBytes = deps.config.maxAnswerBytes
  if (bytes > limitBytes)
    throw new Fault(
      'PAYLOAD_TOO_LARGE',
      { path: 'answer', bytes, limitBytes },
      `The answer has ${bytes} bytes as JSON; a question takes ${limitBytes}.`,
    )
  const schema = readSchema(schemaText)
  if (typeof schema === 'string') throw unusable(schema)
  const verdict = await deps.judge.judge(schema, { text, parsed: answer }, { root: 'answer', org })
  if (verdict.is === 'fits') return text
  if (verdict.is === 'unusable') throw unusable(verdict.invalid.message)
  throw misfit(verdict)
}

function misfit({ invalid: { path, message } }: Exclude<Verdict, { is: 'fits' }>): Fault {
  return new Fault(
    'VALIDATION_FAILED',
    { path },
    `The answer does not fit the schema of the question. ${path}: ${message}`,
  )
}

/** Schemas are looked at when the question is asked; what is found out only now is no answer's fault. */
function unusable(why: string): Fault {
  return new Fault(
    'VALIDATION_FAILED',
    { path: 'schema' },
    `The question's own schema cannot be used, so nobody can answer it: ${why}. Correct it in the program, and cancel this run.`,
  )
}
