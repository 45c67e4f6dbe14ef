import type { Call } from '../api/call.ts'
import type { OrgTurns } from '../limits/org-turns.ts'
import type { Plan } from './plan.ts'

/** A credential is looked up once a second at most. */
export const AGAIN_MS = 1000

/** Where an org takes turns with itself and others. */
export type Turns = Record<NonNullable<Plan['turns']>, OrgTurns>

/** Has the handler answer, in the turn of this org where its row wants one. */
export function handle(plan: Plan, call: Call<never>, { turns, orgId }: { turns: Turns; orgId: string }): unknown {
  if (!plan.turns) return plan.handle(call)
  const since = performance.now()
  return turns[plan.turns].run(orgId, async () => {
    // The credential may be lost while others have their turns: three slow requests of its own org are enough.
    if (performance.now() - since > AGAIN_MS) await call.stay()
    return plan.handle(call)
  })
}
