import type { LogData, LogLevel } from '@windlass/shared/wire/program.ts'
import { runtime } from './bridge.ts'
import { eventText } from './event-text.ts'
import { print } from './print.ts'

// A character takes up to 6 bytes in JSON (a control character does): a piece fits with what stands around it.
const BYTES_PER_CHARACTER = 6.5
const MOST_CHARACTERS = 10_000

/** Facts beside a log line. */
export type LogFields = Record<string, unknown>

/** `log(message, fields?)`, and the same with a level. */
export interface Log {
  (message: string, fields?: LogFields): void
  info(message: string, fields?: LogFields): void
  warn(message: string, fields?: LogFields): void
  error(message: string, fields?: LogFields): void
}

/**
 * Writes a line to the run's log: `log` and `log.info` to its stdout, `log.warn` and `log.error` to its stderr. In
 * order with `console.log` and `phase`, and never lost, even when the program ends in the next statement. An error
 * among the fields keeps its message, stack and cause. Logging never throws: fields that are not JSON or too large (64
 * KiB with the message, unless the service has another limit) are left out, which the line then says; long messages are
 * split, and a message that is no text is written as the console has it, an error with its stack.
 *
 * @example
 * import { log } from 'windlass'
 *
 * export async function run(input: { user: string }) {
 *   log('looking up', { user: input.user })
 *   log.warn('the cache is cold')
 * }
 */
export const log: Log = Object.assign((message: string, fields?: LogFields) => write(undefined, message, fields), {
  info: (message: string, fields?: LogFields) => write('info', message, fields),
  warn: (message: string, fields?: LogFields) => write('warn', message, fields),
  error: (message: string, fields?: LogFields) => write('error', message, fields),
})

/** Types say that a message is a text, and nothing checks that: `catch (error: any) { log(error) }`. */
function write(level: LogLevel | undefined, message: unknown, fields: LogFields | undefined): void {
  const host = runtime()
  if (!host) return print(level, message, fields)
  const limitBytes = host.eventDataBytes
  const texts = pieces(textOf(message), Math.min(MOST_CHARACTERS, Math.floor(limitBytes / BYTES_PER_CHARACTER)))
  const last = texts.length - 1
  for (const [at, text] of texts.entries())
    host.emit('log', lineText({ text, level, fields, more: at < last || undefined }, limitBytes))
}

/** As the console writes it, whole. Reading a value runs its own getters, which may throw. */
function textOf(message: unknown): string {
  if (typeof message === 'string') return message
  try {
    return process.getBuiltinModule('node:util').inspect(message, { maxStringLength: Infinity })
  } catch {
    return `a message that cannot be read: ${typeof message}`
  }
}

/** JSON leaves out what is undefined. */
function lineText(data: LogData, limitBytes: number): string {
  const text = data.fields === undefined ? JSON.stringify(data) : eventText(data)
  if (text === null) return JSON.stringify({ ...data, fields: { omitted: 'the fields are not JSON' } })
  // UTF-8 takes at most three bytes for a unit of a JavaScript text: short ones need no counting.
  const bytes = text.length * 3 <= limitBytes ? 0 : Buffer.byteLength(text)
  if (bytes <= limitBytes) return text
  return JSON.stringify({ ...data, fields: { omitted: 'the fields are too large', bytes, limitBytes } })
}

function pieces(text: string, most: number): string[] {
  if (text.length <= most) return [text]
  const found: string[] = []
  for (let from = 0; from < text.length;) {
    let to = Math.min(from + most, text.length)
    // Never between the two halves of a character beyond the basic plane.
    if (to < text.length && isHighSurrogate(text.charCodeAt(to - 1))) to -= 1
    found.push(text.slice(from, to))
    from = to
  }
  return found
}

const isHighSurrogate = (unit: number) => unit >= 0xd800 && unit <= 0xdbff
