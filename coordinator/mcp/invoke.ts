import { Fault } from '@windlass/shared/errors.ts'
import { FilesAnswer, JsonText, StatusAnswer } from '../api/call.ts'
import { authorize } from '../accounts/authorize.ts'
import { handle } from '../call/handle.ts'
import { checkInput } from '../call/input.ts'
import { authorizeFor } from '../call/owned.ts'
import { outputText } from '../call/output.ts'
import type { Plan } from '../call/plan.ts'
import type { Source } from '../workflows/sources.ts'
import { type Asking, ToolCall } from './asking.ts'
import { Excerpt, isTooManifold, MOST_CHARS } from './cut.ts'

export type Fields = Record<string, unknown>

/** Calls an operation as REST would: the same access check, the same schema, the same handler. */
export async function invoke(plan: Plan, asking: Asking, given: Fields): Promise<Fields> {
  const answer = await called(plan, asking, given)
  const value: unknown = answer instanceof StatusAnswer ? answer.value : answer
  if (plan.row.success === 204) return {}
  if (isFiles(value)) return { ...value.head, files: await glanceAt(value.files) }
  // As if its first part had been asked for.
  if (isWholeValue(plan, given) && value instanceof JsonText && isTooManifold(value.text))
    return invoke(plan, asking, { ...given, offset: 0 })
  if (asking.deps.config.strict) outputText(plan, value, true)
  return (value instanceof JsonText ? JSON.parse(value.text) : value) as Fields
}

/** Of a run, which comes in parts as well. */
function isWholeValue({ row }: Plan, { offset }: Fields): boolean {
  return (row.id === 'runs.input' || row.id === 'runs.output') && offset === undefined
}

/** The files that an operation answers with, none of them unpacked yet. */
export async function invokeForFiles(plan: Plan, asking: Asking, given: Fields): Promise<Source> {
  const answer = await called(plan, asking, given)
  if (isFiles(answer)) return answer.files
  throw new Error(`${plan.row.id} answers without files`)
}

function isFiles(answer: unknown): answer is FilesAnswer {
  return answer instanceof FilesAnswer
}

/** As much of the files as may be shown. */
async function glanceAt(files: Source) {
  const seen = await files.glance(MOST_CHARS)
  return seen.map(({ path, text, chars }) => ({
    path,
    content: text.length < chars ? new Excerpt(text, chars) : text,
  }))
}

async function called(plan: Plan, asking: Asking, given: Fields): Promise<unknown> {
  const { caller, bytes } = asking
  const fields: Fields = plan.scopedToOrg ? { org: caller.org, ...given } : given
  if (plan.scopedToOrg && fields['org'] !== caller.org) throw new Fault('NOT_FOUND')
  await authorizeFor(plan, caller, asking.deps, fields)
  if (plan.ridesIn === 'body' && bytes > plan.bodyBytes) throw tooLarge(plan.bodyBytes, bytes)
  return handled(plan, asking, checkInput(plan, fields))
}

/** As over REST, a caller has so many calls open that wait: a request may carry a hundred of them. */
async function handled(plan: Plan, asking: Asking, input: Fields): Promise<unknown> {
  const leave = input['waitMs'] ? asking.wait() : undefined
  try {
    const { caller, deps } = asking
    const call = new ToolCall(asking, input) as never
    return await handle(plan, call, { turns: deps.turns, orgId: caller.orgId })
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

function tooLarge(limitBytes: number, bytes: number): Fault {
  const message = `A call of this tool may have ${limitBytes} bytes at most.`
  return new Fault('PAYLOAD_TOO_LARGE', { bytes, limitBytes }, message)
}
