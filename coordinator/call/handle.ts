import type { Call } from '../api/call.ts'
import type { OrgReads } from '../limits/org-reads.ts'
import type { Plan } from './plan.ts'

/** Has the handler answer; where it walks through what an org has, in the turn of this org. */
export function handle(
  plan: Plan,
  call: Call<never>,
  { orgReads, orgId }: { orgReads: OrgReads; orgId: string },
): unknown {
  return plan.walks ? orgReads.run(orgId, () => plan.handle(call)) : plan.handle(call)
}
