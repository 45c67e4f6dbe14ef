import type { Call } from '../api/call.ts'
import type { OrgTurns } from '../limits/org-turns.ts'
import type { Plan } from './plan.ts'

/** Where an org takes turns with itself and others. */
export type Turns = Record<NonNullable<Plan['turns']>, OrgTurns>

/**
 * Has the handler answer, in the turn of this org where its row wants one. Whoever reads and has left before its turn
 * gets nothing read: thousands of them would keep the others of the org waiting. What changes something is done.
 */
export function handle(plan: Plan, call: Call<never>, { turns, orgId }: { turns: Turns; orgId: string }): unknown {
  const kind = plan.pauses && isPause(plan, call.input) ? 'orgStops' : plan.turns
  if (!kind) return plan.handle(call)
  return turns[kind].run(orgId, call, () => {
    if (plan.row.method === 'GET') call.assertConnected()
    return plan.handle(call)
  })
}

/** What else it may be asked for at the same time can take long, such as a judgement of an input. */
function isPause({ pathKeys }: Plan, input: Record<string, unknown>): boolean {
  const asked = Object.keys(input).length - pathKeys.length
  return input['enabled'] === false && asked === 1
}
