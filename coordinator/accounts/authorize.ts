import { Fault } from '@windlass/shared/errors.ts'
import { type AnyOp, isSessionOnly } from '@windlass/shared/ops/op.ts'
import { hasRole } from '@windlass/shared/scopes.ts'
import type { Caller } from '../actor.ts'

const NEEDS_SESSION = [
  'An API key cannot do this at any scope; use a session:',
  '`windlass admin sessions create` on the host of the coordinator makes one.',
].join(' ')

/** Throws unless role and scopes of the caller allow the row. */
export function authorize(row: Pick<AnyOp, 'role' | 'scope' | 'credentials'>, caller: Caller): void {
  if (isSessionOnly(row) && caller.kind !== 'session')
    throw new Fault('FORBIDDEN', { needs: { session: true } }, NEEDS_SESSION)
  if (row.role !== null && !hasRole(caller.role, row.role)) {
    const message = `This needs the role ${row.role}; the ${caller.kind} has ${caller.role}.`
    throw new Fault('FORBIDDEN', { needs: { role: row.role } }, message)
  }
  if (caller.scopes.length === 0 || row.scope.some((scope) => caller.scopes.includes(scope))) return
  throw new Fault('FORBIDDEN', { needs: { scopes: row.scope } }, lackOfScope(row))
}

function lackOfScope(row: Pick<AnyOp, 'scope'>): string {
  if (row.scope.length === 0) return 'No scope allows this; use a key without a list of scopes.'
  return `This needs the scope ${row.scope.join(' or ')}; the key's list does not have it.`
}
