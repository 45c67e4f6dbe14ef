import type { OrgId, PoolId, RunId, RunnerId } from '@windlass/shared/ids.ts'
import type { Role, Scope } from '@windlass/shared/scopes.ts'

/**
 * Who holds a credential. Behind the access check only the audit log asks for its `kind`, and the delete of an
 * environment, which may take secrets along.
 */
export interface Caller {
  /** A session may do what mints credentials; a key never. Signed-in people will come as sessions too. */
  kind: 'key' | 'session'
  /** Id of the key or session. */
  id: string
  /** What people call it. */
  name: string
  orgId: OrgId
  org: string
  role: Role
  /** Empty: everything that the role may do. */
  scopes: readonly Scope[]
}

/** A caller in the course of one request. */
export interface Acting extends Caller {
  requestId: string
  via: 'rest' | 'mcp'
}

/** An installed agent, proved by a token that it signed itself. */
export interface RunnerIdentity {
  kind: 'runner'
  id: RunnerId
  name: string
  orgId: OrgId
  poolId: PoolId
  /** Which of its keys: the `x` of the public half. */
  signedWith: string
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

/** What is asked for with a credential, which may be lost meanwhile. */
export interface Revocable {
  /** Throws UNAUTHENTICATED when the credential serves no more. */
  stay(): Promise<void>
}

/** A call that may take long, since it waits for others. */
export interface LongCall extends Revocable {
  readonly caller: Acting
}
