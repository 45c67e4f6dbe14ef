import { pause } from '@windlass/shared/time.ts'
import type { Db } from '../db/client.ts'
import { type Facts, readFacts } from './store.ts'

/** What the database said, and how long ago. */
export interface DatedFacts {
  facts: Facts
  ageMs: number
}

/**
 * Answers the facts, read again when they are too old. Where that takes long, as there is much, those of before are
 * answered meanwhile: whoever has many runs would make gaps in what alarms look at.
 */
export type FactReader = () => Promise<DatedFacts>

const FRESH_MS = 5000
/** A read that takes long is done so much more seldom: one part in twenty of one connection at most. */
const REST_FACTOR = 20
/** Prometheus gives up after 10 s. */
const PATIENCE_MS = 1000

interface Read {
  facts: Facts
  since: number
}

export function createFactReader(db: Db, read: (db: Db) => Promise<Facts> = readFacts): FactReader {
  let reading: Promise<Read> | undefined
  let before: Read | undefined
  let freshUntil = -Infinity

  async function readAgain(): Promise<Read> {
    const since = performance.now()
    freshUntil = Infinity
    try {
      before = { facts: await read(db), since }
    } catch (error) {
      // A database that does not answer is no reason to say what it said before.
      before = undefined
      freshUntil = -Infinity
      throw error
    }
    const now = performance.now()
    freshUntil = now + Math.max(FRESH_MS, (now - since) * REST_FACTOR)
    return before
  }

  return async () => {
    if (!reading || performance.now() >= freshUntil) reading = readAgain()
    const former = before
    const { facts, since } = await (former ? Promise.race([reading, pause(PATIENCE_MS).then(() => former)]) : reading)
    return { facts, ageMs: performance.now() - since }
  }
}
