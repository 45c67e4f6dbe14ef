import type { OrgId, WorkflowId } from '@windlass/shared/ids.ts'
import type { Pace } from '../pace.ts'
import type { WantedRow } from './row.ts'
import { type Decided, decideAll } from './rules/outcome.ts'

export type DecideDeps = { matching: Pace }

interface Ask {
  orgId: OrgId
  wanted: readonly WantedRow[]
  event: string | null
  payload: unknown
  /** Does what is more than a piece in a turn of the org; left out: it has one. */
  inTurn?: <T>(act: () => Promise<T>) => Promise<T>
}

/**
 * Which workflows a delivery starts. A piece is done at once. What compares more goes on by one piece in a turn of the
 * event loop: 20 small deliveries at once, each of which nine filters compared with 8,910 texts, kept everybody else
 * waiting for 2 s.
 */
export async function decisionsOf({ matching }: DecideDeps, ask: Ask): Promise<Map<WorkflowId, Decided>> {
  const { orgId, wanted, inTurn = (act) => act() } = ask
  const pieces = decideAll(wanted, ask)
  const first = pieces.next()
  if (first.done) return first.value
  return inTurn(async () => {
    for (;;) {
      await matching.next(orgId)
      const piece = pieces.next()
      if (piece.done) return piece.value
    }
  })
}
