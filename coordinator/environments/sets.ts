import type { Log } from '@windlass/shared/log.ts'
import type { Db } from '../db/client.ts'
import * as store from './store-sets.ts'

/** What runs are given to start with. A set never changes, so it is kept once it has been read. */
export interface VariableSets {
  /** '0' is the set of runs that started when there was none. */
  get(id: string): Promise<Readonly<Record<string, string>>>
}

const KEPT_BYTES = 32 * 1024 * 1024
/** What an entry takes beside its text. */
const ENTRY_BYTES = 200
const NOTHING = Object.freeze({})

export function createVariableSets(db: Db, keptBytes = KEPT_BYTES): VariableSets {
  const kept = new Map<string, { set: Promise<Record<string, string>>; bytes: number }>()
  let bytes = 0

  function drop(id: string) {
    bytes -= kept.get(id)?.bytes ?? 0
    kept.delete(id)
  }

  async function read(id: string): Promise<Record<string, string>> {
    const text = await store.variablesOf(db, id)
    if (text === undefined) throw new Error(`the set of variables ${id} of a run is missing`)
    const entry = kept.get(id)
    if (entry) {
      // Once as text would be too little: as an object of strings it takes up to two bytes a character.
      entry.bytes += text.length * 2
      bytes += text.length * 2
      for (const oldest of kept.keys()) if (bytes > keptBytes) drop(oldest)
    }
    return JSON.parse(text) as Record<string, string>
  }

  return {
    get(id) {
      if (id === '0') return Promise.resolve(NOTHING)
      const known = kept.get(id)
      if (known) {
        // The one that was used last goes last.
        kept.delete(id)
        kept.set(id, known)
        return known.set
      }
      const set = Promise.resolve().then(() => read(id))
      kept.set(id, { set, bytes: ENTRY_BYTES })
      bytes += ENTRY_BYTES
      set.catch(() => drop(id))
      return set
    },
  }
}

/** Sets that nobody can be given any more. */
export async function cleanVariableSets({ db, log }: { db: Db; log: Log }): Promise<void> {
  const removed = await store.removeRetired(db)
  if (removed > 0) log('variableSets.cleaned', { removed })
}
