import { createHash, type Hash } from 'node:crypto'
import { setImmediate } from 'node:timers/promises'
import { canonicalJson } from '@windlass/shared/canonical-json.ts'

/** For this long a value may keep all others waiting. Nearly every one is through in less. */
const SLICE_MS = 5

/** Those who have had a slice stand in line: one of them goes on in each turn of the event loop. */
let line: Promise<void> = Promise.resolve()

/**
 * SHA-256 of the value's JSON, the same in whatever order its fields stand. Inputs are up to 1 MiB of a caller's
 * choice: 300,000 values take some 200 ms, in which heartbeats and other requests have their turn.
 */
export async function canonicalHash(value: unknown): Promise<Hash> {
  const hash = createHash('sha256')
  if (value === undefined) return hash.update('undefined')
  let since = performance.now()
  for (const piece of canonicalJson(value)) {
    hash.update(piece)
    if (performance.now() - since < SLICE_MS) continue
    line = line.then(() => setImmediate())
    await line
    since = performance.now()
  }
  return hash
}
