import type { Db } from '../db/client.ts'
import { cleanOwnedSecrets } from '../environments/owned-secrets.ts'
import { removeUnverified } from './store-deliveries.ts'
import { removeExpiredKeys } from './store-keys.ts'

const UNVERIFIED_DAYS = 7

/** Removes what is kept for a time only: expired keys, old unverified deliveries, and replaced secrets. */
export async function cleanInbound(deps: { db: Db }): Promise<void> {
  await removeExpiredKeys(deps.db)
  await removeUnverified(deps.db, UNVERIFIED_DAYS)
  await cleanOwnedSecrets(deps)
}
