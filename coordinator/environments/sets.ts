import { LRUCache } from 'lru-cache'
import type { Log } from '@windlass/shared/log.ts'
import { Fault } from '@windlass/shared/errors.ts'
import type { Db, Tx } from '../db/client.ts'
import type { Level } from './row.ts'
import * as store from './store-sets.ts'

/** What runs are given to start with. A set never changes, so it is kept once it has been read. */
export interface VariableSets {
  /** '0' is the set of runs that started when there was none. */
  get(id: string): Promise<Readonly<Record<string, string>>>
}

const CACHE_BYTES = 32 * 1024 * 1024
/** What an entry takes beside its text. */
const ENTRY_BYTES = 200
const NOTHING = Object.freeze({})

export function createVariableSets(db: Db, cacheBytes = CACHE_BYTES): VariableSets {
  const cache = new LRUCache<string, Promise<Record<string, string>>>({ maxSize: cacheBytes })

  async function read(id: string): Promise<Record<string, string>> {
    const texts = await store.textsOf(db, id)
    if (texts === undefined) throw new Error(`the set of variables ${id} of a run is missing`)
    // Once as text would be too little: as an object of strings it takes up to two bytes a character.
    const size = ENTRY_BYTES + (texts.base.length + texts.own.length) * 2
    const known = cache.peek(id)
    // Of a value that is there already no new size is taken.
    if (known && cache.delete(id)) cache.set(id, known, { size })
    return merged(texts)
  }

  return {
    get(id) {
      if (id === '0') return Promise.resolve(NOTHING)
      const known = cache.get(id)
      if (known) return known
      const set = Promise.resolve().then(() => read(id))
      cache.set(id, set, { size: ENTRY_BYTES })
      set.catch(() => cache.delete(id))
      return set
    },
  }
}

function merged({ base, own }: store.SetTexts): Record<string, string> {
  const [ofOrg, ofEnvironment] = [base, own].map((text) => JSON.parse(text) as Record<string, string | null>)
  const all = Object.entries({ ...ofOrg, ...ofEnvironment })
  return Object.fromEntries(all.filter((entry): entry is [string, string] => entry[1] !== null))
}

/** A text as small as this is always taken: a secret can be set whatever else was changed. */
const SMALL_BYTES = 4096
/** Texts that were replaced, of one org. They are kept for an hour, and while an unfinished run has them. */
const MOST_OLD_BYTES = 64 * 1024 * 1024
/** Pairs of texts that were replaced. A change of what the org sets makes one for each environment, 100 bytes long. */
const MOST_OLD_SETS = 100_000
const RETRY_MS = 10 * 60_000

/** After a change on this level: runs that start from now on are given it. The caller holds the lock of the org. */
export async function refresh(tx: Tx, level: Level): Promise<void> {
  const texts = await store.putTexts(tx, level)
  await store.refreshHeads(tx, level, texts)
  const { bytes, oldBytes, oldSets } = await store.storedOf(tx, level, texts.level)
  if (oldSets <= MOST_OLD_SETS && (bytes <= SMALL_BYTES || oldBytes <= MOST_OLD_BYTES)) return
  const isMany = oldSets > MOST_OLD_SETS
  const full = isMany ? { limit: MOST_OLD_SETS, sets: oldSets } : { limitBytes: MOST_OLD_BYTES, bytes: oldBytes }
  const why = 'for an hour, and as long as unfinished runs were started with them'
  throw new Fault(
    'RATE_LIMITED',
    { scope: 'org', path: 'value', retryAfterMs: RETRY_MS, ...full },
    `value: very much of what this org has replaced is still kept: ${why}. Change variables again later.`,
  )
}

/** Sets that nobody can be given any more. */
export async function cleanVariableSets({ db, log }: { db: Db; log: Log }): Promise<void> {
  const removed = await store.removeRetired(db)
  if (removed > 0) log('variableSets.cleaned', { removed })
}
