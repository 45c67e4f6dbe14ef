import type { JournalError } from '@windlass/shared/wire/journal.ts'
import { DevalueError, parse, stringify } from 'devalue'
import { clip } from '../clip.ts'

const RESULT_BYTES = 1024 * 1024
const TEXT_CHARACTERS = 10_000
const STACK_CHARACTERS = 20_000

// Our own come first: devalue refuses errors, and would keep the whole memory pool that a small Buffer is a part of.
const reducers = {
  Error: (value: unknown) => value instanceof Error && errorOf(value),
  Buffer: (value: unknown) => Buffer.isBuffer(value) && value.toString('base64'),
}
const revivers = {
  Error: (error: JournalError) => reviveError(error),
  Buffer: (text: string) => Buffer.from(text, 'base64'),
}

/** The result of a step as text. Throws a TypeError that says what cannot be kept, and where it is. */
export function encodeResult(step: string, value: unknown): string {
  const text = encode(step, value)
  const bytes = text.length * 3 <= RESULT_BYTES ? 0 : Buffer.byteLength(text)
  if (bytes <= RESULT_BYTES) return text
  throw new TypeError(
    `step('${step}') returned ${bytes} bytes, ${RESULT_BYTES} at most. ` +
      'Return less, or keep it in a file and return where it is.',
  )
}

function encode(step: string, value: unknown): string {
  try {
    return stringify(value, reducers)
  } catch (error) {
    if (!(error instanceof DevalueError)) throw error
    const where = error.path === '' || error.path === undefined ? '' : ` at \`${error.path.replace(/^\./, '')}\``
    throw new TypeError(
      `step('${step}') returned something${where} that cannot be kept in the journal: ${whatIs(error.value)}. ` +
        'Return plain objects, arrays, texts, numbers, dates, maps, sets, bytes or errors.',
      { cause: error },
    )
  }
}

function whatIs(value: unknown): string {
  if (typeof value === 'function') return 'a function'
  if (typeof value === 'symbol') return 'a symbol'
  if (typeof value !== 'object' || value === null) return `a ${typeof value}`
  const constructor: unknown = Reflect.get(value, 'constructor')
  const name = typeof constructor === 'function' ? constructor.name : ''
  return name === '' || name === 'Object' ? 'an object with symbols or accessors' : `an instance of ${name}`
}

export function decodeResult(text: string): unknown {
  return parse(text, revivers)
}

/** What is kept of an error. Anything can be thrown, and reading it runs the program's own getters. */
export function errorOf(thrown: unknown): JournalError {
  if (!(thrown instanceof Error)) return { name: 'Error', message: `${shortly(thrown)} was thrown, which is no Error.` }
  const code: unknown = Reflect.get(thrown, 'code')
  const { stack } = thrown
  // Any value can be put there, whatever the types say.
  const { name, message }: Record<'name' | 'message', unknown> = thrown
  return {
    name: clip(String(name), 200),
    message: clip(String(message), TEXT_CHARACTERS),
    ...(typeof code === 'string' && { code: clip(code, 200) }),
    // As HTTP clients and DOMException have it. JSON makes null of the others.
    ...(Number.isFinite(code) && { code: code as number }),
    ...(typeof stack === 'string' && { stack: clip(stack, STACK_CHARACTERS) }),
  }
}

function shortly(value: unknown): string {
  const text = typeof value === 'symbol' || typeof value === 'bigint' ? value.toString() : JSON.stringify(value)
  return clip(text ?? typeof value, 500)
}

export function reviveError({ name, message, code, stack }: JournalError): Error {
  const error = new Error(message)
  const hidden = { configurable: true, writable: true, enumerable: false }
  Object.defineProperty(error, 'name', { ...hidden, value: name })
  if (stack !== undefined) Object.defineProperty(error, 'stack', { ...hidden, value: stack })
  if (code !== undefined) Object.assign(error, { code })
  return error
}
