import type { Fault, FaultCode } from '@windlass/shared/errors.ts'
import { fillRoute } from '@windlass/shared/ops/fill-route.ts'
import type { Plan } from '../call/plan.ts'
import { cutToFit, isTooManifold, MOST_CHARS } from './cut.ts'
import type { Fields } from './invoke.ts'

/** What `tools/call` answers. */
export interface ToolResult {
  content: { type: 'text'; text: string }[]
  structuredContent?: Fields
  isError?: true
  [key: string]: unknown
}

/** The operation whose answer it is. */
type Shown = Pick<Plan, 'row'>

/** What is said about a cut needs room too. */
const ROOM_FOR_NOTES = 2000

/** The answer of an operation. Where it is too long, or was made shorter before, it says what was left out and where that is. */
export function resultOf(plan: Shown, input: Fields, value: Fields, notes: readonly string[] = []): ToolResult {
  const text = JSON.stringify(value)
  if (text.length <= MOST_CHARS) return notes.length > 0 ? said(value, notes) : plain(text, value)
  const rest = restOf(plan, input)
  const page = pageThatFits(plan, value)
  const isManifold = page.shown === value && isTooManifold(text)
  const cut = isManifold ? undefined : cutToFit(page.shown, MOST_CHARS - ROOM_FOR_NOTES)
  if (!cut) return tooLong(plan, text.length, rest)
  return said(cut.value as Fields, [...notes, ...page.notes, ...cut.notes, ...(cut.notes.length > 0 ? [rest] : [])])
}

function plain(text: string, value: Fields): ToolResult {
  return { content: [{ type: 'text', text }], structuredContent: value }
}

/** In both forms, since a client passes on the one or the other. */
function said(value: Fields, notes: readonly string[]): ToolResult {
  const structuredContent = { ...value, cut: notes }
  const { content } = plain(JSON.stringify(structuredContent), structuredContent)
  return { content: [...content, { type: 'text', text: `Cut to stay short. ${notes.join(' ')}` }], structuredContent }
}

/** Of a page of events the first that fit: the reader goes on behind the last. */
function pageThatFits(plan: Shown, value: Fields): { shown: Fields; notes: string[] } {
  const events = value['events']
  if (plan.row.id !== 'runs.events' || !Array.isArray(events)) return { shown: value, notes: [] }
  const fit = (events as { cursor: number }[]).slice(0, Math.max(1, countThatFit(events)))
  if (fit.length === events.length) return { shown: value, notes: [] }
  const since = fit.at(-1)?.cursor
  const note = `These are ${fit.length} of the ${events.length} events of the page; call again with \`since\` ${since} for what follows.`
  return { shown: { ...value, events: fit, done: false }, notes: [note] }
}

/** How many of the first items fit into an answer. */
export function countThatFit(items: readonly unknown[]): number {
  let room = MOST_CHARS - ROOM_FOR_NOTES
  const first = items.findIndex((item) => (room -= JSON.stringify(item).length + 1) < 0)
  return first === -1 ? items.length : first
}

function restOf({ row }: Shown, input: Fields): string {
  if (row.id === 'workflows.get') {
    const address = `windlass://workflows/${String(input['workflow'])}/files/{path}`
    return `get_workflow_file reads each file whole; so does the resource ${address}.`
  }
  if (row.id === 'workflows.getVersion')
    return `get_workflow_file with \`version\` ${String(input['version'])} reads each file whole.`
  if (row.id === 'runs.events')
    return `The log is as text in the resource windlass://runs/${String(input['run'])}/events.`
  if (row.id === 'runs.input' || row.id === 'runs.output')
    return 'It comes whole, as JSON text in parts, with `offset` 0 and then the `nextOffset` of each part.'
  const { path } = fillRoute(row, input)
  return `The whole is at ${row.method} ${path} of the REST API.`
}

function tooLong(plan: Shown, chars: number, rest: string): ToolResult {
  const message = `The answer has ${chars} characters, and nothing in it can be left out by itself.`
  return errorText({ code: 'PAYLOAD_TOO_LARGE', message, detail: { chars, tool: plan.row.mcp?.tool } }, rest)
}

/** A refusal that a model can act on. Not as structured content: that has the shape of the tool's answer. */
export function failureOf({ code, message, detail }: Fault, next = NEXT[code] ?? AGAIN): ToolResult {
  return errorText({ code, message, ...(detail && { detail }) }, next)
}

function errorText(error: object, next: string): ToolResult {
  return { content: [{ type: 'text', text: JSON.stringify({ error, next }) }], isError: true }
}

const AGAIN = 'Try again in a moment; when it stays so, tell the person who runs the service, with the request id.'

const NEXT: Partial<Record<FaultCode, string>> = {
  VALIDATION_FAILED: 'Mend the field at `detail.path` and call the tool again.',
  FORBIDDEN: 'Do not try again with this credential: ask the person for one that may do this.',
  NOT_FOUND: 'Look the id up with the list tool of its kind; what belongs to another org is not found either.',
  CONFLICT: 'Read the thing as it stands now, and decide again.',
  RUN_ALREADY_FINISHED: 'Read it with get_run; retry_run runs it again.',
  RUN_NOT_FINISHED: 'Follow it with get_run_output and `waitMs`.',
  RUN_NOT_BLOCKED: 'explain_run says what it waits for.',
  INPUT_CLOSED: 'list_pending_inputs shows the questions that are open.',
  IDEMPOTENCY_CONFLICT: 'Use another `idempotencyKey`, or the same request as before.',
  RUNNER_BUSY: 'drain_runner empties it; `force` revokes it first.',
  RUNNER_REVOKED: 'The machine has to be registered anew: create_runner_registration_token.',
  POOL_IN_USE: 'list_runners with `pool` shows its machines; deregister them first.',
  ENVIRONMENT_IN_USE: 'list_runs with `environment` shows the runs; wait for their end or cancel them first.',
  WORKFLOW_EXISTS: 'Deploy to it with update_workflow, or choose another slug.',
  PAYLOAD_TOO_LARGE: 'Send less, or use the REST API.',
}
