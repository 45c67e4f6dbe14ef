import type { Db } from '../db/client.ts'
import { cleanOwnedSecrets } from '../environments/owned-secrets.ts'
import { removeUnverified } from './store-deliveries.ts'
import { removeExpiredKeys } from './store-keys.ts'

const UNVERIFIED_DAYS = 7

/** What is kept for a time only: what repetitions are known by, deliveries of nobody, and secrets of before. */
export async function cleanInbound(deps: { db: Db }): Promise<void> {
  await removeExpiredKeys(deps.db)
  await removeUnverified(deps.db, UNVERIFIED_DAYS)
  await cleanOwnedSecrets(deps)
}
