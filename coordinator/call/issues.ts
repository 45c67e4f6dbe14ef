import { didYouMean } from '@windlass/shared/did-you-mean.ts'
import { Fault } from '@windlass/shared/errors.ts'
import { fieldPath } from '@windlass/shared/field-path.ts'
import { firstIssue } from '@windlass/shared/model/strict.ts'
import type { z } from 'zod'

const MOST_ISSUES = 20
/** Number of issues that are examined; a hostile input has one for each of its values. */
const MOST_LOOKED_AT = 200

interface Issue {
  /** As in `files[2].path`. */
  path: string
  message: string
}

/** What is wrong with an input, as the fault that names the first field and lists the others. */
export function invalidInput(schema: z.ZodType, error: z.core.$ZodError): Fault {
  const telling = error.issues.slice(0, MOST_LOOKED_AT).filter(isTelling)
  const issues: Issue[] = []
  for (const issue of telling) issues.push(...issuesOf(schema, issue, MOST_ISSUES - issues.length))
  const rest = error.issues.slice(MOST_LOOKED_AT)
  const count = [...telling, ...rest].reduce((sum, issue) => sum + sizeOf(issue), 0)
  const { path, message } = issues[0] ?? { path: '', message: 'is not valid' }
  const others = count > 1 ? ` (and ${count - 1} more)` : ''
  const text = path === '' ? message : `\`${path}\` ${message}`
  return new Fault('VALIDATION_FAILED', { path, issues }, `${text}${others}`)
}

/** That a number is beyond what is whole in JavaScript says nothing beside the bound of the field itself. */
function isTelling(issue: z.core.$ZodIssue, _at: number, all: readonly z.core.$ZodIssue[]): boolean {
  const bound = issue.code === 'too_big' ? issue.maximum : issue.code === 'too_small' ? issue.minimum : 0
  if (Math.abs(Number(bound)) !== Number.MAX_SAFE_INTEGER) return true
  return !all.some(
    (other) => other !== issue && other.code === issue.code && fieldPath(other.path) === fieldPath(issue.path),
  )
}

const sizeOf = (issue: z.core.$ZodIssue) => (issue.code === 'unrecognized_keys' ? issue.keys.length : 1)

function issuesOf(schema: z.ZodType, issue: z.core.$ZodIssue, most: number): Issue[] {
  if (most <= 0) return []
  if (issue.code === 'unrecognized_keys') {
    const known = knownKeys(schema, issue.path)
    return issue.keys
      .slice(0, most)
      .map((key) => ({ path: fieldPath([...issue.path, key]), message: unknownField(key, known) }))
  }
  const { path, message } = firstIssue({ issues: [issue] } as z.core.$ZodError)
  return [{ path: fieldPath(path), message: reword(message) }]
}

function unknownField(key: string, known: string[]): string {
  const hint = didYouMean(key, known)
  if (hint !== '') return `is not known here${hint}`
  if (known.length === 0) return 'is not known here: there are no fields to give'
  return `is not known here; known are ${known.map((name) => `\`${name}\``).join(', ')}`
}

/** Zod's sentences stand alone; ours stand behind the name of the field. */
function reword(message: string): string {
  const expected = /^Invalid input: expected (.+), received (.+)$/.exec(message)
  if (expected?.[1] === 'nonoptional') return 'is missing; give any JSON value, such as null'
  if (expected?.[1] === 'int' && expected[2] === 'number') return 'must be a whole number, without a fraction'
  if (expected?.[2] === 'undefined') return `is missing; it must be ${article(expected[1]!)}`
  if (expected) return `must be ${article(expected[1]!)}, not ${article(expected[2]!)}`
  const option = /^Invalid option: expected one of (.+)$/.exec(message)
  if (option) return `must be one of ${option[1]!.replaceAll('|', ', ')}`
  const bound = /^(?:Too small|Too big): expected \w+ to (?:be|have) (.+)$/.exec(message)
  if (bound) return `must ${/item|character/.test(bound[1]!) ? 'have' : 'be'} ${bound[1]!}`
  return message === 'Invalid input' ? 'is not valid' : message
}

function article(noun: string): string {
  const name = noun === 'int' ? 'whole number' : noun
  if (!/^[a-z]/.test(name) || name === 'null' || name === 'undefined') return name
  return `${/^[aeio]/.test(name) ? 'an' : 'a'} ${name}`
}

interface Definition {
  type: string
  shape?: Record<string, z.ZodType>
  element?: z.ZodType
  innerType?: z.ZodType
  valueType?: z.ZodType
  in?: z.ZodType
  options?: z.ZodType[]
}

/** The fields that the schema knows at a path. */
function knownKeys(schema: z.ZodType, path: readonly PropertyKey[]): string[] {
  let here = [schema]
  for (const segment of path) here = here.flatMap((at) => definitions(at).flatMap((def) => inside(def, segment)))
  return here.flatMap((at) => definitions(at).flatMap((def) => Object.keys(def.shape ?? {})))
}

/** A schema below its wrappers; a union is all that it may be. */
export function definitions(schema: z.ZodType): Definition[] {
  const def = schema.def as unknown as Definition
  const wrapped = def.innerType ?? def.in
  if (wrapped) return definitions(wrapped)
  return def.options ? def.options.flatMap(definitions) : [def]
}

function inside(def: Definition, segment: PropertyKey): z.ZodType[] {
  const next = typeof segment === 'number' ? def.element : (def.shape?.[String(segment)] ?? def.valueType)
  return next ? [next] : []
}
