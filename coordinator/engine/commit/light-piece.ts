import type { RunId } from '@windlass/shared/ids.ts'
import type { Db, Sql } from '../../db/client.ts'
import { entriesOf } from '../store/runs.ts'

/** To close what a journal has open takes 44 µs an entry (72,000: 3.2 s), and others wait for the commit. */
export const MOST_TO_CLOSE = 5000

/**
 * The first of these runs, until their journals are enough for one transaction that may end them: one at least. A
 * hundred runs that each have 25,000 open entries took longer than a statement may, time and again.
 */
export async function lightPiece(sql: Sql, ids: readonly RunId[]): Promise<RunId[]> {
  const entries = await entriesOf(sql, ids)
  let sum = 0
  const end = ids.findIndex((id, i) => (sum += entries.get(id) ?? 0) > MOST_TO_CLOSE && i > 0)
  return end === -1 ? [...ids] : ids.slice(0, end)
}

/** All of these runs in such pieces, those with short journals first: they are not to wait for the others. */
export async function lightPieces(db: Db, ids: readonly RunId[]): Promise<RunId[][]> {
  const entries = await entriesOf(db, ids)
  const weightOf = (id: RunId) => entries.get(id) ?? 0
  const pieces: RunId[][] = []
  let left = 0
  for (const id of ids.toSorted((a, b) => Number(weightOf(a) > MOST_TO_CLOSE) - Number(weightOf(b) > MOST_TO_CLOSE))) {
    if (pieces.length === 0 || weightOf(id) > left) {
      pieces.push([])
      left = MOST_TO_CLOSE
    }
    pieces.at(-1)!.push(id)
    left -= weightOf(id)
  }
  return pieces
}
