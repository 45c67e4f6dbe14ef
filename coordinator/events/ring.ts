import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import type { Bell } from './bell.ts'
import type { Tails } from './live.ts'

export type RingDeps = { tails: Pick<Tails, 'ring'>; bell: Pick<Bell, 'ring'> }

/** After the commit of a lifecycle event: readers of the run and of its org, here and at other coordinators. */
export function ringRun(deps: RingDeps, run: { id: RunId; orgId: OrgId }): void {
  deps.tails.ring(run.id)
  deps.bell.ring('run', run.id)
  ringOrg(deps, run.orgId)
}

/** Of a run that is new nobody reads anything yet, but of its org. */
export function ringOrg({ tails, bell }: RingDeps, orgId: OrgId): void {
  tails.ring(orgId)
  bell.ring('org', orgId)
}
