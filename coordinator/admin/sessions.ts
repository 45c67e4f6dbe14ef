import type { Role } from '@windlass/shared/scopes.ts'
import { needOrg } from '../accounts/orgs.ts'
import * as sessions from '../accounts/sessions.ts'
import type { Admin } from './open.ts'

export interface SessionAsk {
  org: string
  name: string
  role: Role
  lifeMs: number
}

export async function createSession(
  { db, operator }: Admin,
  { org, ...ask }: SessionAsk,
): Promise<sessions.MintedSession> {
  const { id: orgId } = await needOrg(db, org)
  return sessions.createSession(db, { ...operator, orgId }, ask)
}

/** Of one org, or of all. */
export async function listSessions({ db }: Admin, org?: string): Promise<sessions.OperatorSession[]> {
  return sessions.listSessions(db, org === undefined ? undefined : (await needOrg(db, org)).id)
}

/** Named by its id or by itself. */
export function revokeSession({ db, operator }: Admin, session: string) {
  return sessions.revokeSession(db, operator, session)
}
