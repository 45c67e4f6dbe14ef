import { Fault } from '@windlass/shared/errors.ts'
import type { AnyOp } from '@windlass/shared/ops/op.ts'
import { hasRole } from '@windlass/shared/scopes.ts'
import type { Actor, Caller, ProgramIdentity, RunnerIdentity } from '../actor.ts'
import type { Plan } from './plan.ts'

/** Who stands behind a credential, door by door. Each throws UNAUTHENTICATED for one that does not serve. */
export interface Verifiers {
  caller(bearer: string): Promise<Caller>
  runner(bearer: string): Promise<RunnerIdentity>
  program(bearer: string): Promise<ProgramIdentity>
}

/** Lets the request through the door of its row, or throws. Rows behind the public door have no actor. */
export async function admit(
  plan: Plan,
  params: Record<string, string>,
  authorization: string | undefined,
  verify: Verifiers,
): Promise<Actor | undefined> {
  const { row } = plan
  if (row.door === 'public') return undefined
  const bearer = bearerOf(authorization)
  if (row.door === 'runner') return verify.runner(bearer)
  if (row.door === 'program') {
    const program = await verify.program(bearer)
    if (plan.scopedToRun && params['run'] !== program.runId) throw new Fault('NOT_FOUND')
    return program
  }
  const caller = await verify.caller(bearer)
  // Before the role: a stranger must not learn from a 403 that the org exists.
  if (plan.scopedToOrg && params['org'] !== caller.org) throw new Fault('NOT_FOUND')
  authorize(row, caller)
  return caller
}

export function bearerOf(authorization: string | undefined): string {
  const bearer = authorization === undefined ? undefined : /^bearer +(\S+) *$/i.exec(authorization)?.[1]
  if (bearer === undefined) throw new Fault('UNAUTHENTICATED')
  return bearer
}

const NEEDS_SESSION =
  'An API key cannot do this at any scope; use a session: `windlass admin sessions create` on the host of the coordinator makes one.'

/** Throws unless role and scopes of the caller allow the row. */
export function authorize(row: AnyOp, caller: Caller): void {
  if (row.sessionOnly && caller.kind !== 'session')
    throw new Fault('FORBIDDEN', { needs: { session: true } }, NEEDS_SESSION)
  if (row.role !== null && !hasRole(caller.role, row.role)) {
    const message = `This needs the role ${row.role}; the key has ${caller.role}.`
    throw new Fault('FORBIDDEN', { needs: { role: row.role } }, message)
  }
  if (caller.scopes.length === 0 || row.scope.some((scope) => caller.scopes.includes(scope))) return
  throw new Fault('FORBIDDEN', { needs: { scopes: row.scope } }, lackOfScope(row))
}

function lackOfScope(row: AnyOp): string {
  if (row.scope.length === 0) return 'No scope allows this; use a key without a list of scopes.'
  return `This needs the scope ${row.scope.join(' or ')}; the key's list does not have it.`
}
