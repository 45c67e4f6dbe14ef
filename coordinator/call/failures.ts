import { Fault } from '@windlass/shared/errors.ts'
import type { Log } from '@windlass/shared/log.ts'
import { isConnectionLoss, lacksPartition } from '../db/client.ts'
import { DISK_FULL, READ_ONLY, TAKES_NO_WRITES } from '../db/read-only.ts'
import { createSample } from '../limits/sample.ts'
import { ClientGone } from './body.ts'
import type { Plan } from './plan.ts'
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

export interface Failing {
  plan: Plan | undefined
  requestId: string
  log: Log
  /** What was asked, as far as it has been read. */
  input?: unknown
  /** In tests a row must declare what it answers. */
  strict: boolean
}

/** The fault to answer for whatever was thrown, or undefined when nobody is left to answer. Logs what is ours. */
export function faultFor(error: unknown, failing: Failing): Fault | undefined {
  if (error instanceof Fault) return declared(error, failing)
  if (hasGone(error)) return undefined
  if (isConnectionLoss(error) || lacksPartition(error)) return unavailable(error, failing)
  if (codeOf(error) === READ_ONLY) return unavailable(error, failing, TAKES_NO_WRITES)
  if (SLOW.has(codeOf(error))) return slow(error, failing)
  if (FULL.has(codeOf(error))) return full(error, failing)
  if (UNSTORABLE.has(codeOf(error))) return nulRefused(failing.input)
  return broken(error, failing)
}

function declared(fault: Fault, failing: Failing): Fault {
  const { plan, strict } = failing
  if (!strict || !plan || plan.faults.has(fault.code)) return fault
  return broken(
    new Error(`${plan.row.id} answered ${fault.code}, which its row does not declare`, { cause: fault }),
    failing,
  )
}

function hasGone(error: unknown): boolean {
  return error instanceof ClientGone || ['ERR_REQUEST_ABORTED', 'ERR_REQUEST_CLOSED'].includes(codeOf(error))
}

function unavailable(error: unknown, { plan, requestId, log }: Failing, message?: string): Fault {
  const now = performance.now()
  if (now - unavailableLoggedAt >= UNAVAILABLE_LOG_MS) {
    unavailableLoggedAt = now
    log.warn('http.unavailable', {
      op: plan?.row.id,
      requestId,
      reason: error instanceof Error ? error.message : error,
    })
  }
  return new Fault('UNAVAILABLE', undefined, message)
}

function full(error: unknown, { plan, requestId, log }: Failing): Fault {
  const facts = lines.full(plan?.row.id ?? '')
  if (facts) log.error('http.disk.full', { op: plan?.row.id, requestId, error, ...facts })
  const message =
    'The disk of the coordinator or of its database is full. Its operator has to make room; then try again.'
  return new Fault('UNAVAILABLE', { requestId }, message)
}

function slow(error: unknown, { plan, requestId, log }: Failing): Fault {
  const facts = lines.slow(plan?.row.id ?? '')
  if (facts) log.warn('http.slow', { op: plan?.row.id, requestId, error, ...facts })
  const message = 'Others have changed the same for longer than a request waits. Nothing was written; try again.'
  return new Fault('UNAVAILABLE', { requestId }, message)
}

function broken(error: unknown, { plan, requestId, log }: Failing): Fault {
  const facts = lines.broken(plan?.row.id ?? '')
  if (facts) log.error('http.failed', { op: plan?.row.id, requestId, error, ...facts })
  return new Fault('INTERNAL', { requestId })
}

function codeOf(error: unknown): string {
  return error instanceof Error && 'code' in error && typeof error.code === 'string' ? error.code : ''
}
