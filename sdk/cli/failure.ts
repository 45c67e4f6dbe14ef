import { CommanderError } from 'commander'
import { ApiError } from '../client/index.ts'
import { EXIT } from './exit-codes.ts'
import { wayOut, withoutAdvice } from './way-out.ts'

interface FailureAbout {
  code: string
  detail: Record<string, unknown>
}

/** Something a person can mend: what is wrong, and the command to type next. */
export class Failure extends Error {
  override readonly name = 'Failure'
  readonly exit: number
  readonly next: string
  readonly code: string
  /** Facts for a script, as in the API's errors. */
  readonly detail: Record<string, unknown> | undefined

  constructor(message: string, next: string, exit: number = EXIT.usage, about: FailureAbout | string = 'USAGE') {
    const { code, detail } = typeof about === 'string' ? { code: about, detail: undefined } : about
    super(message)
    this.next = next
    this.exit = exit
    this.code = code
    this.detail = detail
  }
}

export interface FailureReport {
  message: string
  next: string | undefined
  exit: number
  /** The same as the API's error envelope, for `--json`. */
  envelope: { error: { code: string; message: string; detail?: Record<string, unknown> } }
}

/** What is said of an error, `command` being what was typed, such as `runs get`. */
export function reportOf(error: unknown, command: string): FailureReport {
  if (error instanceof Failure)
    return tell(error.message, error.next, error.exit, { code: error.code, detail: error.detail })
  if (error instanceof ApiError) return reportOfApiError(error, command)
  if (error instanceof CommanderError)
    return tell(error.message.replace(/^error: /, ''), undefined, EXIT.usage, { code: 'USAGE' })
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return tell(`windlass itself failed, please report it: ${message}`, `windlass ${command} --help`, EXIT.failed, {
    code: 'INTERNAL',
  })
}

function reportOfApiError(error: ApiError, command: string): FailureReport {
  const [next, exit] = wayOut(error, command)
  const message = error.mayBeDone ? sentence(messageOf(error)) + MAY_BE_DONE : messageOf(error)
  return tell(message, next, exit, { code: error.code, detail: detailOf(error) })
}

const MAY_BE_DONE = ' It may have been done.'

/** A page of a proxy ends in no full stop. */
const sentence = (text: string) => (/[.!?)]$/.test(text) ? text : `${text}.`)

/** For a script, which must not take what may have been done for what was not. */
export function detailOf({ detail, mayBeDone }: ApiError): Record<string, unknown> | undefined {
  return mayBeDone ? { ...detail, mayBeDone } : detail
}

/** What is wrong, for whoever says himself what may have been done. */
export function messageOf(error: ApiError): string {
  const { path, file } = error.detail ?? {}
  // The message names the file; its place in the request says nothing to a person.
  const isNamed = typeof path !== 'string' || error.message.includes(path) || file !== undefined
  const where = isNamed ? '' : `${path}: `
  const id = error.status >= 500 && error.requestId ? ` (request ${error.requestId})` : ''
  const message = error.mayBeDone ? withoutAdvice(error.message) : error.message
  return `${where}${message}${id}`
}

function tell(
  message: string,
  next: string | undefined,
  exit: number,
  facts: { code: string; detail?: Record<string, unknown> },
): FailureReport {
  const { code, detail } = facts
  return { message, next, exit, envelope: { error: { code, message, ...(detail && { detail }) } } }
}
