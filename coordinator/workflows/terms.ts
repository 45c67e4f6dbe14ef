import { LRUCache } from 'lru-cache'
import type { VersionId } from '@windlass/shared/ids.ts'
import { type Descriptor, FENCE_RETRIES } from '@windlass/shared/model/descriptor.ts'
import type { Db, Sql } from '../db/client.ts'
import * as store from './store.ts'

/**
 * How runs of a version are given out, stopped and ended. That is some 500 bytes: schemas, filters and inputs of
 * schedules, a megabyte together, are of the whole `Version`, for whoever judges inputs and outputs.
 */
export interface VersionTerms extends store.Executed {
  descriptor: Pick<
    Descriptor,
    'process' | 'slots' | 'timeoutMs' | 'wallTimeoutMs' | 'queueTimeoutMs' | 'cancelGraceMs' | 'retries'
  >
  crashRetries: number
  fenceRetries: number
  /** Whether a run of it may wait for the locks of limits. */
  isLimited: boolean
}

/** Versions never change, so these are kept. */
export interface TermsReader {
  /** Within a transaction by `through`: a second connection could be one that others like it wait for. */
  get(id: VersionId, through?: Sql): Promise<VersionTerms>
  /** Reads together what `get` is about to be asked for one by one. What is missing is said there. */
  warm(ids: readonly VersionId[], through?: Sql): Promise<void>
}

/** 15 MB. */
const MOST_TERMS = 20_000
/** In one statement. The database goes through each descriptor, which is 1 ms for one of 250 KB. */
const AT_ONCE = 50

export function createTermsReader(db: Db): TermsReader {
  const cache = new LRUCache<VersionId, VersionTerms>({ max: MOST_TERMS })
  const underWay = new Map<VersionId, Promise<void>>()

  async function read(ids: readonly VersionId[], through: Sql): Promise<void> {
    for (let at = 0; at < ids.length; at += AT_ONCE)
      for (const row of await store.termsOf(through, ids.slice(at, at + AT_ONCE))) cache.set(row.id, toTerms(row))
  }

  /** All who ask for a version at once wait for one look at it. */
  async function readOnce(ids: readonly VersionId[]): Promise<void> {
    const others = ids.flatMap((id) => underWay.get(id) ?? [])
    const mine = ids.filter((id) => !underWay.has(id))
    const reading = read(mine, db).finally(() => mine.forEach((id) => underWay.delete(id)))
    for (const id of mine) underWay.set(id, reading)
    await Promise.all([reading, ...others])
  }

  async function warm(ids: readonly VersionId[], through?: Sql): Promise<void> {
    const unknown = [...new Set(ids)].filter((id) => cache.get(id) === undefined)
    if (unknown.length > 0) await (through ? read(unknown, through) : readOnce(unknown))
  }

  return {
    warm,
    async get(id, through) {
      const known = cache.get(id)
      if (known) return known
      await warm([id], through)
      const found = cache.get(id)
      if (!found) throw new Error(`version ${id} of a run is missing`)
      return found
    },
  }
}

function toTerms(row: store.TermsRow): VersionTerms {
  const { process, slots, timeoutMs, wallTimeoutMs, queueTimeoutMs, cancelGraceMs, retries, ...rest } = row
  return {
    ...rest,
    // Descriptors that were deployed by an earlier release have no slots.
    descriptor: { process, slots: slots ?? 1, timeoutMs, wallTimeoutMs, queueTimeoutMs, cancelGraceMs, retries },
    crashRetries: retries.crash,
    fenceRetries: retries.fence ?? FENCE_RETRIES,
  }
}
