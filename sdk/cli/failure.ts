import { CommanderError } from 'commander'
import { ApiError } from '../client/index.ts'
import { EXIT } from './exit-codes.ts'

/** Something a person can mend: what is wrong, and the command to type next. */
export class Failure extends Error {
  override readonly name = 'Failure'
  readonly exit: number
  readonly next: string
  readonly code: string

  constructor(message: string, next: string, exit: number = EXIT.usage, code = 'USAGE') {
    super(message)
    this.next = next
    this.exit = exit
    this.code = code
  }
}

export interface Told {
  message: string
  next: string | undefined
  exit: number
  /** The same as the API's error envelope, for `--json`. */
  envelope: { error: { code: string; message: string; detail?: Record<string, unknown> } }
}

/** How an error is told, `command` being what was typed, such as `runs get`. */
export function told(error: unknown, command: string): Told {
  if (error instanceof Failure) return tell(error.message, error.next, error.exit, { code: error.code })
  if (error instanceof ApiError) return toldApiError(error, command)
  if (error instanceof CommanderError) return tell(error.message, undefined, EXIT.usage, { code: 'USAGE' })
  const message = error instanceof Error ? (error.stack ?? error.message) : String(error)
  return tell(`windlass itself failed, please report it: ${message}`, `windlass ${command} --help`, EXIT.failed, {
    code: 'INTERNAL',
  })
}

function toldApiError(error: ApiError, command: string): Told {
  const [next, exit] = wayOut(error, command)
  const where =
    typeof error.detail?.['path'] === 'string' && !error.message.includes(error.detail['path'])
      ? `${error.detail['path']}: `
      : ''
  const id = error.status >= 500 && error.requestId ? ` (request ${error.requestId})` : ''
  return tell(`${where}${error.message}${id}`, next, exit, { code: error.code, detail: error.detail })
}

function wayOut(error: ApiError, command: string): [next: string, exit: number] {
  const [group = ''] = command.split(' ')
  const list = ['runs', 'inputs', 'workflows', 'pools', 'runners'].includes(group) ? group : 'workflows'
  if (error.status === 0)
    return [
      '`npm start` in the project starts a local one; another is named by --url or WINDLASS_URL',
      EXIT.unreachable,
    ]
  if (error.status === 401)
    return ['pass a key by --api-key or WINDLASS_API_KEY; `npm start` prints the local one', EXIT.refused]
  if (error.status === 403) return ['use a key with the role and scope that are named', EXIT.refused]
  if (error.status === 404) return [`windlass ${list} list`, EXIT.refused]
  if (error.code === 'RUN_ALREADY_FINISHED') return ['windlass runs retry <run> runs it again', EXIT.failed]
  if (error.code === 'RUN_NOT_FINISHED') return ['windlass runs events -f <run> follows it to its end', EXIT.failed]
  if (error.code === 'RUN_NOT_BLOCKED') return ['windlass runs why <run> tells where it is', EXIT.failed]
  if (error.code === 'INPUT_CLOSED') return ['windlass inputs get <input> shows how it was closed', EXIT.failed]
  if (error.status === 409) return [`windlass ${list} list`, EXIT.failed]
  if (error.status === 429 || error.status === 503)
    return [`wait a little, then again: windlass ${command}`, EXIT.unreachable]
  if (error.status >= 500) return ['windlass service health', EXIT.failed]
  return [
    command === 'run' ? 'windlass workflows get <workflow> shows what input it takes' : `windlass ${command} --help`,
    EXIT.usage,
  ]
}

function tell(
  message: string,
  next: string | undefined,
  exit: number,
  facts: { code: string; detail?: Record<string, unknown> },
): Told {
  const { code, detail } = facts
  return { message, next, exit, envelope: { error: { code, message, ...(detail && { detail }) } } }
}
