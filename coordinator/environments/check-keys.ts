import type { Log } from '@windlass/shared/log.ts'
import { Fault } from '@windlass/shared/errors.ts'
import type { Db } from '../db/client.ts'
import { findDrafts, removeDrafts } from './key-file.ts'
import type { SecretKeys } from './secret-keys.ts'
import * as store from './store-sealed.ts'

/** Says at the start, and not only when a run needs one, which secrets this coordinator could not read. It serves all the rest. */
export async function warnOfKeys({ db, log, secretKeys }: { db: Db; log: Log; secretKeys: SecretKeys }): Promise<void> {
  // Also where nothing is sealed yet: what is wrong with a file of keys is in the log by that.
  const known = await fingerprintsOf(secretKeys)
  for (const { fingerprint, secrets } of await store.keysInUse(db))
    if (!known.includes(fingerprint)) log.warn('secrets.keyMissing', { key: fingerprint, secrets })
}

async function fingerprintsOf(secretKeys: SecretKeys): Promise<readonly string[]> {
  try {
    return (await secretKeys.ring()).fingerprints
  } catch (error) {
    if (error instanceof Fault) return []
    throw error
  }
}

/**
 * Removes what killed rotations have left beside the file of keys: keys that were retired would stay on the disk. While
 * somebody seals or rotates, and where this coordinator may not change the folder, `--retire` or a later start does it.
 */
export async function clearDrafts({ db, log }: { db: Db; log: Log }, path: string): Promise<void> {
  try {
    if ((await findDrafts(path)).length === 0) return
    const files = await db.begin(async (tx) => ((await store.tryLockKeys(tx)) ? removeDrafts(path) : undefined))
    if (files === undefined) log.warn('secrets.draftsLeft', { path, reason: 'somebody seals or rotates' })
    else log('secrets.draftsRemoved', { path, files })
  } catch (error) {
    log.warn('secrets.draftsLeft', { path, reason: (error as Error).message })
  }
}
