import { LRUCache } from 'lru-cache'
import type { OrgId, RunId, VersionId } from '@windlass/shared/ids.ts'
import type { Db } from '../../db/client.ts'
import type { Version, Versions } from '../../workflows/targets.ts'
import type { TermsReader } from '../../workflows/terms.ts'
import * as store from '../store/runs.ts'

/** Looks up by what terms these runs are executed, before a transaction that needs them, and then holds their locks. */
export async function warmTerms(deps: { db: Db; versionTerms: TermsReader }, runIds: readonly string[]): Promise<void> {
  if (runIds.length === 0) return
  await deps.versionTerms.warm(await store.versionsOf(deps.db, runIds))
}

/** What runs execute, which never changes. */
export interface RunVersions {
  /** Undefined when there is no such run. `mayLook` is asked first, unless the run is known. */
  of(run: { orgId: OrgId; runId: RunId }, mayLook?: () => Promise<void>): Promise<Version | undefined>
  /** Notes the version, which spares `of` a query. */
  note(runId: RunId, id: VersionId): void
}

/** Number of runs that are remembered, at 100 bytes each. */
const MOST_RUNS = 20_000

export function createRunVersions(db: Db, versions: Versions): RunVersions {
  const cache = new LRUCache<RunId, VersionId>({ max: MOST_RUNS })

  return {
    note: (runId, id) => void cache.set(runId, id),
    async of({ orgId, runId }, mayLook) {
      const known = cache.get(runId)
      if (known === undefined) await mayLook?.()
      const id = known ?? (await store.versionsOf(db, [runId]))[0]
      if (id === undefined) return undefined
      cache.set(runId, id)
      return versions.get(orgId, id)
    },
  }
}
