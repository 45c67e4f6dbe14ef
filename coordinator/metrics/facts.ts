import type { Db } from '../db/client.ts'
import { type Facts, readFacts } from './store.ts'

/** Answers the facts, read again when they are too old. */
export type FactReader = () => Promise<Facts>

const FRESH_MS = 5000
/** A read that takes long, as there is much, is done so much more seldom: one part in twenty of one connection at most. */
const REST_FACTOR = 20

export function createFactReader(db: Db): FactReader {
  let reading: Promise<Facts> | undefined
  let freshUntil = -Infinity
  return () => {
    if (reading && performance.now() < freshUntil) return reading
    const since = performance.now()
    freshUntil = Infinity
    reading = readFacts(db)
    const settled = () => {
      const now = performance.now()
      freshUntil = now + Math.max(FRESH_MS, (now - since) * REST_FACTOR)
    }
    reading.then(settled, () => (freshUntil = -Infinity))
    return reading
  }
}
