import { createHash, type Hash } from 'node:crypto'
import { canonicalJson } from '@windlass/shared/canonical-json.ts'
import type { OrgId } from '@windlass/shared/ids.ts'
import { createSlices } from './slices.ts'

/**
 * SHA-256 of the value's JSON, the same in whatever order its fields stand. Inputs are up to 1 MiB of a caller's
 * choice: 300,000 values take some 200 ms, in which heartbeats and other requests have their turn. `orgId`: whose turns
 * it takes.
 */
export async function canonicalHash(value: unknown, orgId: OrgId): Promise<Hash> {
  const hash = createHash('sha256')
  if (value === undefined) return hash.update('undefined')
  const endOfSlice = createSlices(orgId)
  for (const piece of canonicalJson(value)) {
    hash.update(piece)
    const turn = endOfSlice()
    if (turn) await turn
  }
  return hash
}
