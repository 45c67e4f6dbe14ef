import type { Call } from '../api/call.ts'
import type { OrgTurns } from '../limits/org-turns.ts'
import type { Plan } from './plan.ts'

/** Where an org takes turns with itself and others. */
export type Turns = Record<NonNullable<Plan['turns']>, OrgTurns>

/** Has the handler answer, in the turn of this org where its row wants one. */
export function handle(plan: Plan, call: Call<never>, { turns, orgId }: { turns: Turns; orgId: string }): unknown {
  return plan.turns ? turns[plan.turns].run(orgId, () => plan.handle(call)) : plan.handle(call)
}
