import type { WorkflowId } from '@windlass/shared/ids.ts'
import { DELIVERY_OUTCOMES, type DeliveryOutcome } from '@windlass/shared/model/delivery.ts'
import type { MatchRow, WantedRow } from '../row.ts'
import { createEffort, type Effort, type Pieces, TooMuchToCompare } from './effort.ts'
import { refusedBy } from './filter.ts'
import { storable } from './headers.ts'
import { matchesEvent } from './patterns.ts'

export type Decided = { start: WantedRow } | { not: MatchRow }

/** What came in. */
interface Said {
  event: string | null
  payload: unknown
}

/** Whether a delivery starts each of these workflows, in their order. All of it is one effort. */
export function* decideAll(
  wanted: readonly WantedRow[],
  said: Said,
  effort = createEffort(),
): Pieces<Map<WorkflowId, Decided>> {
  const all = new Map<WorkflowId, Decided>()
  for (const [workflowId, entries] of Map.groupBy(wanted, (entry) => entry.workflowId))
    all.set(workflowId, yield* decide(entries, said, effort))
  return all
}

/** Whether a delivery starts a workflow, by its entries for the connection. The first of them that fits counts. */
export function* decide(entries: readonly WantedRow[], said: Said, effort: Effort): Pieces<Decided> {
  try {
    return yield* decided(entries, said, effort)
  } catch (error) {
    if (!(error instanceof TooMuchToCompare)) throw error
    return { not: { workflowId: entries[0]!.workflowId, outcome: 'too_large', reason: TOO_MUCH, runId: null } }
  }
}

const TOO_MUCH =
  'The filters of all that could take it compare more of the payload than is done for one delivery: ' +
  'use fewer patterns with `*`, and fewer lists.'

function* decided(entries: readonly WantedRow[], { event, payload }: Said, effort: Effort): Pieces<Decided> {
  const { workflowId } = entries[0]!
  const meant: WantedRow[] = []
  for (const entry of entries) if (yield* means(entry, event, effort)) meant.push(entry)
  if (meant.length === 0) {
    const patterns = entries.flatMap(({ events }) => events).slice(0, 5)
    const named = event === null ? 'names no event' : `is the event \`${event}\``
    const reason = `It ${named}; the workflow takes ${patterns.map((one) => `\`${one}\``).join(', ')}.`
    return { not: { workflowId, outcome: 'unmatched', reason: storable(reason), runId: null } }
  }
  const refused: string[] = []
  for (const entry of meant) {
    const field = yield* refusedBy(entry.filter, payload, effort)
    if (field === undefined) return { start: entry }
    refused.push(field)
  }
  const reason = `The filter refuses the field \`${refused[0]}\` of the payload.`
  return { not: { workflowId, outcome: 'filtered', reason: storable(reason), runId: null } }
}

function* means({ events }: WantedRow, event: string | null, effort: Effort): Pieces<boolean> {
  for (const pattern of events) {
    if (effort.endsPiece()) yield
    if (matchesEvent(pattern, event, effort)) return true
  }
  return false
}

export const disabledConnection = (name: string) => `The connection \`${name}\` is disabled.`

/** The first that applies to one of the workflows, with its reason. */
export function topOf(matches: readonly Pick<MatchRow, 'outcome' | 'reason'>[]): {
  outcome: DeliveryOutcome
  reason: string | null
} {
  for (const outcome of DELIVERY_OUTCOMES) {
    const found = matches.find((match) => match.outcome === outcome)
    if (found) return { outcome, reason: found.reason }
  }
  return { outcome: 'unmatched', reason: 'No workflow names this connection.' }
}
