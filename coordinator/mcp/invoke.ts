import { Fault } from '@windlass/shared/errors.ts'
import { JsonText, StatusAnswer } from '../api/call.ts'
import { authorize } from '../http/access.ts'
import { checkInput } from '../http/input.ts'
import { outputText } from '../http/output.ts'
import type { Plan } from '../http/plan.ts'
import { type Asking, ToolCall } from './asking.ts'

export type Fields = Record<string, unknown>

/** Calls an operation as REST would: the same door, the same schema, the same handler. */
export async function invoke(plan: Plan, asking: Asking, given: Fields): Promise<Fields> {
  const { caller, deps, bytes } = asking
  const fields: Fields = plan.scopedToOrg ? { org: caller.org, ...given } : given
  if (plan.scopedToOrg && fields['org'] !== caller.org) throw new Fault('NOT_FOUND')
  authorize(plan.row, caller)
  if (plan.ridesIn === 'body' && bytes > plan.bodyBytes) throw tooLarge(plan.bodyBytes)
  const answer = await handled(plan, asking, checkInput(plan, fields))
  const value: unknown = answer instanceof StatusAnswer ? answer.value : answer
  if (plan.row.success === 204) return {}
  if (deps.config.strict) outputText(plan, value, true)
  return (value instanceof JsonText ? JSON.parse(value.text) : value) as Fields
}

/** As over REST, a caller has so many calls open that wait: a request may carry a hundred of them. */
async function handled(plan: Plan, asking: Asking, input: Fields): Promise<unknown> {
  const leave = input['waitMs'] ? asking.wait() : undefined
  try {
    return await plan.handle(new ToolCall(asking, input) as never)
  } finally {
    leave?.()
  }
}

export function mayCall(plan: Plan, asking: Pick<Asking, 'caller'>): boolean {
  try {
    authorize(plan.row, asking.caller)
    return true
  } catch (error) {
    if (error instanceof Fault) return false
    throw error
  }
}

function tooLarge(limitBytes: number): Fault {
  return new Fault('PAYLOAD_TOO_LARGE', { limitBytes }, `A call of this tool may have ${limitBytes} bytes at most.`)
}
