import { inspect } from 'node:util'
import type { ThrownError } from '@windlass/shared/model/ending.ts'
import { clip } from '../clip.ts'
import type { Engine } from '../engine/port.ts'

export type Outcome = { returned: string } | { threw: ThrownError }

const TEXT_CHARACTERS = 10_000
const STACK_CHARACTERS = 20_000
const DETAIL_BYTES = 64 * 1024
/** Values that are looked at for one of which JSON keeps nothing: some milliseconds. */
const MOST_LOOKS = 10_000
// Errors of waits say which run or question they speak of. What others put into a field of this name is theirs to tell.
const OURS = new Set<unknown>(['RUN_FAILED', 'RUN_CANCELLED', 'INPUT_TIMED_OUT', 'CALL_REFUSED'])

export function outcomeText(outcome: Outcome): string {
  return 'returned' in outcome
    ? 'run() returned'
    : `run() threw ${outcome.threw.name}: ${clip(outcome.threw.message, 500)}`
}

/** What `run` gave back, as JSON text, or the error that says why it is not JSON. */
export function ofValue(value: unknown, outputBytes: number): Outcome {
  if (value === undefined) return { returned: 'null' }
  let text: string | undefined
  try {
    text = JSON.stringify(value)
  } catch (error) {
    return invalid(whyNotJson(value) ?? { path: '', what: `something whose toJSON() throws: ${messageOf(error)}` })
  }
  if (text === undefined) return invalid({ path: '', what: `a ${typeof value}` })
  const bytes = Buffer.byteLength(text)
  return bytes > outputBytes ? tooLarge(bytes, outputBytes) : { returned: text }
}

/** What is lost of a value that was returned, in words. Undefined: nothing that this finds. */
export function lossOf(value: unknown, { returned }: { returned: string }): string | undefined {
  if (!returned.includes('{}')) return undefined
  let found: Culprit | null = null
  try {
    found = emptied(value, '', { looks: MOST_LOOKS })
  } catch {
    // A getter of the program, which JSON has not asked.
  }
  if (!found) return undefined
  const where = found.path === '' ? '' : `, at \`${found.path}\`,`
  return `run() returned${where} ${found.what}, of which JSON keeps nothing but {}. Return an array or a plain object.`
}

/** The first that has no fields of its own, and is no plain object: a Map, a Set, an Error, a promise, a generator. */
function emptied(value: unknown, path: string, left: { looks: number }): Culprit | null {
  if (typeof value !== 'object' || value === null || left.looks-- <= 0) return null
  if (typeof Reflect.get(value, 'toJSON') === 'function') return null
  const entries = Object.entries(value)
  if (entries.length === 0 && !isPlain(value)) return { path, what: nameOf(value) }
  for (const [key, inner] of entries) {
    const found = emptied(inner, step(path, key, Array.isArray(value)), left)
    if (found) return found
  }
  return null
}

function isPlain(value: object): boolean {
  const prototype: unknown = Object.getPrototypeOf(value)
  // `Object.prototype` of another realm has no prototype either.
  const isObject = prototype === null || Object.getPrototypeOf(prototype) === null
  const isEmpty = Reflect.get(value, 'size') === 0
  return Array.isArray(value) || isEmpty || (isObject && typeof Reflect.get(value, 'next') !== 'function')
}

function nameOf(value: object): string {
  const name: unknown = (Reflect.get(value, 'constructor') as { name?: unknown } | undefined)?.name
  return typeof name === 'string' && name !== '' ? `a value of the class ${clip(name, 100)}` : 'an iterator'
}

interface Culprit {
  path: string
  what: string
}

function invalid({ path, what }: Culprit): Outcome {
  const where = path === '' ? 'a value' : `a value with, at \`${path}\`,`
  const message =
    path === ''
      ? `run() returned ${what}, which is not JSON. Return an object, array, text, number, boolean or null.`
      : `run() returned ${where} ${what}, which is not JSON. Return a text or a number in its place, or leave it out.`
  return { threw: { name: 'OutputError', code: 'OUTPUT_INVALID', message, detail: { path } } }
}

function tooLarge(bytes: number, limitBytes: number): Outcome {
  const message =
    `run() returned ${bytes} bytes of JSON, ${limitBytes} at most. ` +
    'Return less, or keep it in a file and return where it is.'
  return { threw: { name: 'OutputError', code: 'OUTPUT_TOO_LARGE', message, detail: { bytes, limitBytes } } }
}

/** The first bigint or circular reference, found only after JSON has refused the value. */
function whyNotJson(value: unknown, path = '', above: readonly object[] = []): Culprit | null {
  if (typeof value === 'bigint') return { path, what: 'a bigint' }
  if (typeof value !== 'object' || value === null) return null
  if (above.includes(value)) return { path, what: 'a circular reference' }
  for (const [key, inner] of Object.entries(value)) {
    const found = whyNotJson(inner, step(path, key, Array.isArray(value)), [...above, value])
    if (found) return found
  }
  return null
}

function step(path: string, key: string, inArray: boolean): string {
  if (inArray) return `${path}[${key}]`
  if (!/^[\p{L}_$][\p{L}\p{N}_$]*$/u.test(key)) return `${path}[${JSON.stringify(key)}]`
  return path === '' ? key : `${path}.${key}`
}

/** Anything can be thrown. Reading an error runs the program's own getters, which may throw in turn. */
export function ofThrown(thrown: unknown, engine: Pick<Engine, 'ledBy'> | undefined): Outcome {
  try {
    const ledBy = engine?.ledBy(thrown)
    return { threw: { ...describe(thrown), ...(ledBy && { ledBy }) } }
  } catch {
    return { threw: { name: 'Error', message: 'The program threw something that cannot be read.' } }
  }
}

function describe(thrown: unknown): ThrownError {
  if (!(thrown instanceof Error))
    return { name: 'Error', message: `The program threw ${shortly(thrown)}, which is no Error.` }
  // Any value can be put there, whatever the types say.
  const { name, message, stack, code }: Record<'name' | 'message' | 'stack' | 'code', unknown> = {
    name: thrown.name,
    message: thrown.message,
    stack: thrown.stack,
    code: Reflect.get(thrown, 'code') as unknown,
  }
  const error: ThrownError = {
    name: clip(String(name), 200),
    message: clip(String(message), TEXT_CHARACTERS),
  }
  if (typeof stack === 'string') error.stack = clip(stack, STACK_CHARACTERS)
  if (typeof code === 'string') error.code = clip(code, 200)
  const detail: unknown = OURS.has(error.code) ? Reflect.get(thrown, 'detail') : undefined
  if (typeof detail === 'object' && detail !== null) error.detail = detailOf(detail)
  return error
}

/** Through JSON and back: it is reported in a moment, and must not fail then. */
function detailOf(detail: object): NonNullable<ThrownError['detail']> {
  const text = JSON.stringify(detail)
  return Buffer.byteLength(text) <= DETAIL_BYTES ? (JSON.parse(text) as Record<string, unknown>) : { truncated: true }
}

function shortly(thrown: unknown): string {
  return clip(inspect(thrown, { depth: 2 }), 500)
}

const messageOf = (error: unknown) => (error instanceof Error ? error.message : String(error))
