import type { CoordinatorFrame } from '@windlass/shared/wire/agent.ts'
import type { RunnerIdentity } from '../actor.ts'
import type { DatabaseClock } from '../db/database-clock.ts'
import type { GroupCommit } from '../db/group-commit.ts'
import type { Reach } from '../db/reach.ts'
import type { takeBackDeclined } from '../dispatch/claim.ts'
import type { tellWakes } from '../dispatch/wakes.ts'
import type { Acceptance, Accepted } from '../engine/commit/acceptances.ts'
import type { Beat, Beaten, reconcile, renewTokens } from '../engine/commit/leases.ts'
import type { explainLosses } from '../engine/commit/losses.ts'
import type { AgentBatch, Applied } from '../engine/rules/batch.ts'
import type { OrgId } from '@windlass/shared/ids.ts'
import type { Needs } from '@windlass/shared/needs.ts'
import type { closeByAgent, liftOnHello } from '../runners/intake.ts'
import type { AgentSocket } from './agent-socket.ts'
import type { Disconnection } from './disconnections.ts'
import type { createLeaseTerms, LeaseTerms } from './lease-terms.ts'

/** Where what agents say goes, many at the same moment in one statement. */
export interface AgentGroups {
  /** Heartbeats. */
  beats: GroupCommit<Beat & { orgId: OrgId }, Beaten>
  /** Offers that become leases. */
  acceptances: GroupCommit<Acceptance, Accepted>
  /** What agents report. */
  entries: GroupCommit<AgentBatch, Applied>
  /** That agents are gone. */
  disconnections: GroupCommit<Disconnection, void>
}

export type SessionNeeds = AgentGroups &
  Needs<
    | typeof createLeaseTerms
    | typeof reconcile
    | typeof explainLosses
    | typeof renewTokens
    | typeof takeBackDeclined
    | typeof tellWakes
    | typeof liftOnHello
    | typeof closeByAgent
  > & {
    /** The epoch of the cluster. */
    cluster: string
    databaseClock: DatabaseClock
    reach: Pick<Reach, 'onAway'>
  }

/** One connection, as its frames see it. */
export interface Session {
  deps: SessionNeeds
  runner: RunnerIdentity
  socket: AgentSocket
  /** By which the agent reaches us. */
  baseUrl: string
  terms: LeaseTerms
  /** When the upgrade was answered, by `performance.now()`. */
  openedAt: number
  /** Which start of the agent speaks here, once it was let in. */
  instance: string | undefined
  /** Which of its runner's connections this is, once it was let in; 0 before. */
  connection: number
  /** It was closed meanwhile. */
  isOver: boolean
  tell: (frame: CoordinatorFrame) => void
}
