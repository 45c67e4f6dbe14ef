import type { Org } from '@windlass/shared/model/org.ts'
import * as orgs from '../accounts/orgs.ts'
import type { Admin } from './open.ts'

export function createOrg({ db, operator }: Admin, ask: { slug: string; name: string }): Promise<Org> {
  return orgs.createOrg(db, operator, ask)
}

export function listOrgs({ db }: Admin): Promise<Org[]> {
  return orgs.listOrgs(db)
}
