import { Fault } from '@windlass/shared/errors.ts'
import type { Log } from '@windlass/shared/log.ts'
import { faultForUnforeseen, hasGone } from '../unforeseen.ts'
import { UNTOUCHED } from '../untouched.ts'
import type { Plan } from './plan.ts'

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
  return hasGone(error) ? undefined : unforeseen(error, failing)
}

function declared(fault: Fault, failing: Failing): Fault {
  const { plan, strict } = failing
  if (!strict || !plan || plan.faults.has(fault.code)) return fault
  const message = `${plan.row.id} answered ${fault.code}, which its row does not declare`
  return unforeseen(new Error(message, { cause: fault }), failing)
}

const unforeseen = (error: unknown, { plan, ...asked }: Failing): Fault =>
  faultForUnforeseen(error, { ...asked, op: plan?.row.id })

/** A failure before its handler was called has changed nothing: the change may be asked for again. */
export function ofTheUnbegun(fault: Fault, plan: Plan | undefined): Fault {
  if (fault.status < 500 || !plan || plan.row.method === 'GET') return fault
  return new Fault(fault.code, { ...fault.detail, ...UNTOUCHED }, fault.message)
}
