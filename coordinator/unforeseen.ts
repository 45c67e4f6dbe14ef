import { Fault } from '@windlass/shared/errors.ts'
import type { Log } from '@windlass/shared/log.ts'
import { isConnectionLoss, lacksPartition } from './db/client.ts'
import { DISK_FULL, READ_ONLY, TAKES_NO_WRITES } from './db/read-only.ts'
import { isUntouched, UNTOUCHED } from './untouched.ts'
import { createSample } from './limits/sample.ts'
import { nulRefused } from './texts.ts'

/** SQLSTATEs for text that PostgreSQL cannot hold: U+0000, alone or as an escape in JSON. */
const UNSTORABLE = new Set(['22021', '22P05'])

/** No room: of the disk or the quota of our files, and PostgreSQL's own. */
const FULL = new Set(['ENOSPC', 'EDQUOT', DISK_FULL])

/** A lock, or the whole statement, took longer than anybody waits. */
const SLOW = new Set(['55P03', '57014'])

/** While the database is away every request fails alike: one line a second says it. */
const UNAVAILABLE_LOG_MS = 1000
let unavailableLoggedAt = Number.NEGATIVE_INFINITY

/** By operation: whoever can make one fail must not fill the disk with it. */
const lines = { full: createSample(), slow: createSample(), broken: createSample() }

export interface Unforeseen {
  /** Id of the operation. */
  op: string | undefined
  requestId: string
  log: Log
  /** What was asked, as far as it has been read. */
  input?: unknown
}

/** The client left before it was answered: there is nobody to answer, and nothing to log. */
export class ClientGone extends Error {
  constructor() {
    super('the client has gone')
    this.name = 'ClientGone'
  }
}

export function hasGone(error: unknown): boolean {
  return error instanceof ClientGone || ['ERR_REQUEST_ABORTED', 'ERR_REQUEST_CLOSED'].includes(codeOf(error))
}

/** The fault to answer for what was thrown and is no Fault. Logs what is ours. */
export function faultForUnforeseen(error: unknown, asked: Unforeseen): Fault {
  // An item of a batch: nobody reads what became of it.
  if (hasGone(error)) return new Fault('UNAVAILABLE')
  if (isConnectionLoss(error) || lacksPartition(error)) return unavailable(error, asked)
  if (codeOf(error) === READ_ONLY) return withWhatIsSure(unavailable(error, asked, TAKES_NO_WRITES), asked)
  if (SLOW.has(codeOf(error))) return withWhatIsSure(slow(error, asked), asked)
  if (FULL.has(codeOf(error))) return full(error, asked)
  if (UNSTORABLE.has(codeOf(error))) return nulRefused(asked.input)
  return broken(error, asked)
}

function unavailable(error: unknown, { op, requestId, log }: Unforeseen, message?: string): Fault {
  const now = performance.now()
  if (now - unavailableLoggedAt >= UNAVAILABLE_LOG_MS) {
    unavailableLoggedAt = now
    log.warn('http.unavailable', { op, requestId, reason: error instanceof Error ? error.message : error })
  }
  return new Fault('UNAVAILABLE', undefined, message)
}

/** Of a statement that was refused: its transaction was taken back, and what the operation had done before was not. */
function withWhatIsSure(fault: Fault, { op }: Unforeseen): Fault {
  if (!isUntouched(op)) return fault
  const message = fault.message.replace('; try again.', '. Nothing was written; try again.')
  return new Fault(fault.code, { ...fault.detail, ...UNTOUCHED }, message)
}

function full(error: unknown, { op, requestId, log }: Unforeseen): Fault {
  const facts = lines.full(op ?? '')
  if (facts) log.error('http.disk.full', { op, requestId, error, ...facts })
  const message =
    'The disk of the coordinator or of its database is full. Its operator has to make room; then try again.'
  return new Fault('UNAVAILABLE', { requestId }, message)
}

function slow(error: unknown, { op, requestId, log }: Unforeseen): Fault {
  const facts = lines.slow(op ?? '')
  if (facts) log.warn('http.slow', { op, requestId, error, ...facts })
  const message = 'Others have changed the same for longer than a request waits; try again.'
  return new Fault('UNAVAILABLE', { requestId }, message)
}

function broken(error: unknown, { op, requestId, log }: Unforeseen): Fault {
  const facts = lines.broken(op ?? '')
  if (facts) log.error('http.failed', { op, requestId, error, ...facts })
  return new Fault('INTERNAL', { requestId })
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}
