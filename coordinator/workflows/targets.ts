import { LRUCache } from 'lru-cache'
import type { OrgId, PoolId, VersionId, WorkflowId, WorkflowRef } from '@windlass/shared/ids.ts'
import { type Descriptor, FENCE_RETRIES } from '@windlass/shared/model/descriptor.ts'
import type { Db, Sql } from '../db/client.ts'
import type { Bell } from '../events/bell.ts'
import { type Schema, schemaOf } from '../judging/schema.ts'
import { createOrgCache } from '../limits/org-cache.ts'
import * as store from './store.ts'

/** What executing a version takes. Versions never change, so these are kept. */
export interface Version {
  id: VersionId
  orgId: OrgId
  org: string
  workflowId: WorkflowId
  slug: string
  version: number
  descriptor: Descriptor
  bundleDigest: string
  bundleBytes: number
  crashRetries: number
  fenceRetries: number
  /** What `run` takes and returns; undefined where that is anything. */
  input: Schema | undefined
  output: Schema | undefined
}

export interface Versions {
  /** Within a transaction by `through`: a second connection could be one that others like it wait for. */
  get(id: VersionId, through?: Sql): Promise<Version>
}

/** What a trigger needs to know of a workflow. */
export interface Target {
  version: Version
  pool: { id: PoolId; name: string }
}

/** A version of a workflow that is not deleted, before anybody has judged whether a run of it may start. */
export interface Resolved {
  version: Version
  /** Null when the descriptor names none that exists. */
  pool: Target['pool'] | null
  /** Since when the workflow is, and the id of who did it. */
  disabled: { at: Date; by: string } | null
}

export interface Targets {
  /** Returns undefined when there is no such workflow or version. */
  resolve(orgId: OrgId, workflow: WorkflowRef, version?: number): Promise<Resolved | undefined>
  /**
   * Looks for all of these versions by one statement. What it resolves with remembers which are not there, so that a
   * thousand items that each name another do not look for it each.
   */
  among(orgId: OrgId, workflow: WorkflowRef, versions: readonly number[]): Promise<Targets>
  forget(orgId: OrgId): void
}

/** 700 versions with 50 KB of schemas, or 60 of the largest. */
const MOST_CHARS = 32 * 1024 * 1024

export function createVersions(db: Db): Versions {
  const cache = new LRUCache<VersionId, Version>({ maxSize: MOST_CHARS, sizeCalculation: charsOf })
  const underWay = new Map<VersionId, Promise<Version>>()

  async function read(id: VersionId, through: Sql): Promise<Version> {
    const row = await store.versionForExecution(through, id)
    if (!row) throw new Error(`version ${id} of a run is missing`)
    const version = toVersion(row)
    cache.set(id, version)
    return version
  }

  /** All who trigger a version at once wait for one look at it. */
  function readOnce(id: VersionId): Promise<Version> {
    const known = underWay.get(id)
    if (known) return known
    const found = read(id, db).finally(() => underWay.delete(id))
    underWay.set(id, found)
    return found
  }

  return {
    async get(id, through) {
      return cache.get(id) ?? (through ? read(id, through) : readOnce(id))
    },
  }
}

function charsOf({ descriptor, input, output }: Version): number {
  return JSON.stringify(descriptor).length + (input?.text.length ?? 0) + (output?.text.length ?? 0)
}

/** What descriptors lack that were deployed by an earlier release. */
const ADDED_LATER = {
  wallTimeoutMs: null,
  queueTimeoutMs: null,
  slots: 1,
  throttle: null,
  debounce: null,
  webhook: null,
}

function toVersion(row: store.ExecutionRow): Version {
  const { inputSchema, outputSchema, ...rest } = row
  const descriptor = { ...ADDED_LATER, ...row.descriptor }
  return {
    ...rest,
    descriptor,
    crashRetries: row.descriptor.retries.crash,
    fenceRetries: row.descriptor.retries.fence ?? FENCE_RETRIES,
    input: schemaOf('derived', inputSchema),
    output: schemaOf('derived', outputSchema),
  }
}

/** After the commit of a change to what an org's triggers run: here at once, at other coordinators in an instant. */
export function targetsChanged(deps: TargetsChange, orgId: OrgId): void {
  deps.targets.forget(orgId)
  deps.bell.ring('workflows', orgId)
}

export type TargetsChange = { targets: Targets; bell: Pick<Bell, 'ring'> }

/** A change of which no word came from the other coordinator is seen after this long. */
const FRESH_MS = 1000
const MOST_TARGETS = 2000

/** Without the version: of 2,000 with large schemas these would be gigabytes. */
type Found = Promise<(Omit<Resolved, 'version'> & { versionId: VersionId }) | undefined>

export function createTargets(db: Db, versions: Versions): Targets {
  const cache = createOrgCache<Found>({ max: MOST_TARGETS, ttlMs: FRESH_MS })

  async function look(orgId: OrgId, workflow: WorkflowRef, number: number | undefined): Found {
    const row = await store.findTarget(db, orgId, workflow, number)
    if (!row) return undefined
    return {
      versionId: row.versionId,
      pool: row.poolId ? { id: row.poolId, name: row.poolName! } : null,
      disabled: row.disabledAt ? { at: row.disabledAt, by: row.disabledBy! } : null,
    }
  }

  function find(orgId: OrgId, workflow: WorkflowRef, number: number | undefined): Found {
    const key = `${workflow}/${number ?? ''}`
    const known = cache.get(orgId, key)
    if (known) return known
    const found = look(orgId, workflow, number)
    cache.set(orgId, key, found)
    found.catch(() => cache.drop(orgId, key, found))
    return found
  }

  const targets: Targets = {
    async resolve(orgId, workflow, number) {
      const found = await find(orgId, workflow, number)
      if (!found) return undefined
      const { versionId, pool, disabled } = found
      return { version: await versions.get(versionId), pool, disabled }
    },
    async among(orgId, workflow, numbers) {
      if (numbers.length === 0) return targets
      const missing = new Set(numbers)
      for (const number of await store.versionsAmong(db, orgId, { workflow, numbers })) missing.delete(number)
      return {
        ...targets,
        resolve: async (org, ref, number) =>
          ref === workflow && number !== undefined && missing.has(number)
            ? undefined
            : targets.resolve(org, ref, number),
      }
    },
    forget: (orgId) => cache.forget(orgId),
  }
  return targets
}
