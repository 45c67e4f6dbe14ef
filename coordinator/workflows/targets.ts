import { LRUCache } from 'lru-cache'
import type { OrgId, PoolId, VersionId, WorkflowRef } from '@windlass/shared/ids.ts'
import { type Descriptor, FENCE_RETRIES } from '@windlass/shared/model/descriptor.ts'
import type { Db } from '../db/client.ts'
import type { Bell } from '../events/bell.ts'
import { type Schema, schemaOf } from '../judging/schema.ts'
import { createOrgCache } from '../limits/org-cache.ts'
import { createSeats } from '../limits/seats.ts'
import { createSlowOrgs } from '../limits/slow-orgs.ts'
import * as store from './store.ts'
import type { TermsReader, VersionTerms } from './terms.ts'

/** All that triggers and outputs are judged by. Versions never change, so these are kept. */
export interface Version extends VersionTerms {
  descriptor: Descriptor
  /** What `run` takes and returns; undefined where that is anything. */
  input: Schema | undefined
  output: Schema | undefined
}

/** Reads versions as a whole. For what gives runs out and ends them there is `TermsReader`. */
export interface Versions {
  /** Not within a transaction: it waits for others of the org, and for a connection. */
  get(orgId: OrgId, id: VersionId): Promise<Version>
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
  /** Of the current version: for whoever starts nothing, and looks at workflows of many orgs. */
  terms(orgId: OrgId, workflow: WorkflowRef): Promise<VersionTerms | undefined>
  /**
   * Looks for all of these versions by one statement. What it resolves with remembers which are not there, so that a
   * thousand items that each name another do not look for it each.
   */
  among(orgId: OrgId, workflow: WorkflowRef, versions: readonly number[]): Promise<Targets>
  forget(orgId: OrgId): void
}

/** 700 versions with 50 KB of schemas, or 60 of the largest. */
const MOST_CHARS = 32 * 1024 * 1024

/**
 * Versions that are being read at once, of an org and of all. Each may be a megabyte, which the event loop parses in
 * one go: 256 of one org had all connections, and kept the others waiting for 8 s.
 */
const SEATS = { org: 2, all: 4 }

export function createVersions(db: Db): Versions {
  const cache = new LRUCache<VersionId, Version>({ maxSize: MOST_CHARS })
  const underWay = new Map<VersionId, Promise<Version>>()
  const seats = createSeats(SEATS, createSlowOrgs())

  async function read(orgId: OrgId, id: VersionId): Promise<Version> {
    const leave = await seats.take(orgId)
    try {
      const row = await store.versionForExecution(db, id)
      if (!row) throw new Error(`version ${id} of a run is missing`)
      const version = toVersion(row)
      const size = row.descriptorBytes + (version.input?.text.length ?? 0) + (version.output?.text.length ?? 0)
      cache.set(id, version, { size })
      return version
    } finally {
      leave()
    }
  }

  /** All who trigger a version at once wait for one look at it. */
  function readOnce(orgId: OrgId, id: VersionId): Promise<Version> {
    const known = underWay.get(id)
    if (known) return known
    const found = read(orgId, id).finally(() => underWay.delete(id))
    underWay.set(id, found)
    return found
  }

  return { get: async (orgId, id) => cache.get(id) ?? readOnce(orgId, id) }
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
  const { inputSchema, outputSchema, descriptorBytes: _, ...rest } = row
  const descriptor = { ...ADDED_LATER, ...row.descriptor }
  return {
    ...rest,
    descriptor,
    crashRetries: row.descriptor.retries.crash,
    fenceRetries: row.descriptor.retries.fence ?? FENCE_RETRIES,
    isLimited: descriptor.concurrency !== null || descriptor.throttle !== null,
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

export function createTargets(db: Db, versions: Versions, versionTerms: TermsReader): Targets {
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
      return { version: await versions.get(orgId, versionId), pool, disabled }
    },
    async terms(orgId, workflow) {
      const found = await find(orgId, workflow, undefined)
      return found && versionTerms.get(found.versionId)
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
