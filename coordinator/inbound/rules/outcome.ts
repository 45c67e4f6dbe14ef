import { DELIVERY_OUTCOMES, type DeliveryOutcome } from '@windlass/shared/model/delivery.ts'
import type { MatchRow, WantedRow } from '../row.ts'
import { refusedBy } from './filter.ts'
import { storable } from './headers.ts'
import { matchesEvent } from './patterns.ts'

type Decided = { start: WantedRow } | { not: MatchRow }

/** Whether a delivery starts a workflow, by its entries for the connection. The first of them that fits counts. */
export function decide(entries: readonly WantedRow[], event: string | null, payload: unknown): Decided {
  const { workflowId } = entries[0]!
  const meant = entries.filter(({ events }) => events.some((pattern) => matchesEvent(pattern, event)))
  if (meant.length === 0) {
    const patterns = entries.flatMap(({ events }) => events).slice(0, 5)
    const named = event === null ? 'names no event' : `is the event \`${event}\``
    const reason = `It ${named}; the workflow takes ${patterns.map((one) => `\`${one}\``).join(', ')}.`
    return { not: { workflowId, outcome: 'unmatched', reason: storable(reason), runId: null } }
  }
  const start = meant.find(({ filter }) => refusedBy(filter, payload) === undefined)
  if (start) return { start }
  const field = refusedBy(meant[0]!.filter, payload)
  const reason = `The filter refuses the field \`${field}\` of the payload.`
  return { not: { workflowId, outcome: 'filtered', reason: storable(reason), runId: null } }
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
