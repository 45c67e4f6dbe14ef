import type { Deps } from '../deps.ts'
import * as store from './store.ts'

/**
 * Looks up what these runs execute, before a transaction that needs it: in the transaction it would take a second connection, and many
 * who come together could hold them all.
 */
export async function warmVersions(deps: Pick<Deps, 'db' | 'versions'>, runIds: readonly string[]): Promise<void> {
  if (runIds.length === 0) return
  const ids = await store.versionsOf(deps.db, runIds)
  await Promise.all(ids.map((id) => deps.versions.get(id)))
}
