import type { ApiKey } from '@windlass/shared/model/api-key.ts'
import * as keys from '../accounts/api-keys.ts'
import { needOrg } from '../accounts/orgs.ts'
import type { Admin } from './open.ts'

export async function createKey(
  { db, operator }: Admin,
  { org, ...ask }: keys.KeyAsk & { org: string },
): Promise<{ apiKey: ApiKey; key: string }> {
  const { id: orgId } = await needOrg(db, org)
  return keys.createKey(db, { ...operator, orgId }, ask)
}

const PAGE = 1000

/** All keys of an org, newest first. */
export async function listKeys({ db }: Admin, org: string): Promise<ApiKey[]> {
  const { id } = await needOrg(db, org)
  const all: ApiKey[] = []
  for (;;) {
    const page = await keys.listKeys({ db }, id, { before: all.at(-1)?.id, limit: PAGE })
    all.push(...page)
    if (page.length < PAGE) return all
  }
}

/** A key of any org, named by its id or by itself. Coordinators that know it let go of it within a second. */
export function revokeKey({ db, operator }: Admin, key: string): Promise<keys.Revoked> {
  return keys.revokeAnyKey(db, operator, key)
}
