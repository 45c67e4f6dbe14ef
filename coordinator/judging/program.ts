import { serve } from '../tools/serve.ts'
import type { JsonSchema } from '../workflows/json-schema.ts'
import { type Check, compile, type Origin } from './compile.ts'
import type { Invalid } from './invalid.ts'

/** What the process is asked: to compile a schema, and to judge a value by it when there is one. */
export interface JudgeJob {
  key: string
  /** Sent with the first value only; the process caches it. */
  schema?: { origin: Origin; text: string }
  /** The process forgets all schemas first. */
  isFull?: boolean
  value?: { text: string; root: string }
}

export type JudgeAnswer = { is: 'fits' } | { is: 'misfit'; invalid: Invalid } | { is: 'unusable'; why: string }

/** Compiled schemas by key, or why one cannot be compiled. */
const checks = new Map<string, Check | { why: string }>()

serve<JudgeJob, JudgeAnswer>((job, step) => {
  if (job.isFull) checks.clear()
  if (job.schema) {
    checks.set(job.key, compiled(job.schema))
    if (job.value) step()
  }
  const check = checks.get(job.key)
  if (!check) throw new Error(`the schema ${job.key} was not sent`)
  if (typeof check !== 'function') return { is: 'unusable', why: check.why }
  if (!job.value) return { is: 'fits' }
  const { text, root } = job.value
  try {
    const invalid = check(JSON.parse(text), root)
    return invalid ? { is: 'misfit', invalid } : { is: 'fits' }
  } catch (error) {
    if (!isTooDeep(error)) throw error
    return { is: 'misfit', invalid: { path: root, message: 'nests too deep to be checked against its schema' } }
  }
})

function compiled({ origin, text }: { origin: Origin; text: string }): Check | { why: string } {
  try {
    const check = compile(origin, JSON.parse(text) as JsonSchema | boolean)
    // V8 translates at the first call: that belongs to compiling. It also finds schemas that lead to themselves.
    check(null, '')
    return check
  } catch (error) {
    if (isTooDeep(error)) return { why: 'it nests too deep, or leads to itself without end' }
    return { why: error instanceof Error ? error.message : String(error) }
  }
}

/** The compiler of schemas recurses, as deep as a type has properties; and so do schemas that refer to themselves. */
function isTooDeep(error: unknown): boolean {
  return error instanceof RangeError && /call stack/.test(error.message)
}
