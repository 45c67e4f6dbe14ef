import { LRUCache } from 'lru-cache'
import type { RunId, VersionId } from '@windlass/shared/ids.ts'
import type { Db } from '../../db/client.ts'
import type { Version, Versions } from '../../workflows/targets.ts'
import * as store from '../store/runs.ts'

/**
 * Looks up what these runs execute, before a transaction that needs it: in the transaction it would take a second
 * connection, and many who come together could hold them all.
 */
export async function warmVersions(deps: { db: Db; versions: Versions }, runIds: readonly string[]): Promise<void> {
  if (runIds.length === 0) return
  const ids = await store.versionsOf(deps.db, runIds)
  await Promise.all(ids.map((id) => deps.versions.get(id)))
}

/** What runs execute, which never changes. */
export interface RunVersions {
  /** Undefined when there is no such run. `mayLook` is asked first, unless the run is known. */
  of(runId: RunId, mayLook?: () => Promise<void>): Promise<Version | undefined>
  /** Notes the version, which spares `of` a query. */
  note(runId: RunId, id: VersionId): void
}

/** Number of runs that are remembered, at 100 bytes each. */
const MOST_RUNS = 20_000

export function createRunVersions(db: Db, versions: Versions): RunVersions {
  const cache = new LRUCache<RunId, VersionId>({ max: MOST_RUNS })

  return {
    note: (runId, id) => void cache.set(runId, id),
    async of(runId, mayLook) {
      const known = cache.get(runId)
      if (known === undefined) await mayLook?.()
      const id = known ?? (await store.versionsOf(db, [runId]))[0]
      if (id === undefined) return undefined
      cache.set(runId, id)
      return versions.get(id)
    },
  }
}
