import type { OrgId, PoolId, RunId, RunnerId } from '@windlass/shared/ids.ts'
import type { Role, Scope } from '@windlass/shared/scopes.ts'

/** A person or key. Sessions will be one more `kind`; nothing behind the access check asks for it. */
export interface Caller {
  kind: 'key'
  /** Id of the key. */
  id: string
  orgId: OrgId
  org: string
  role: Role
  /** Empty: everything that the role may do. */
  scopes: readonly Scope[]
}

/** An installed agent, proved by a token that it signed itself. */
export interface RunnerIdentity {
  kind: 'runner'
  id: RunnerId
  name: string
  orgId: OrgId
  poolId: PoolId
}

/** A program in execution, proved by its per-run token. */
export interface ProgramIdentity {
  kind: 'program'
  runId: RunId
  orgId: OrgId
  runnerId: RunnerId
  epoch: number
}

export type Actor = Caller | RunnerIdentity | ProgramIdentity
