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
  const { light, long } = await lightAndLong(db, ids)
  return [...light, ...long.map((id) => [id])]
}

/** Such pieces of those with short journals, the shortest first, and all that have more entries than one may have. */
export async function lightAndLong(db: Db, ids: readonly RunId[]): Promise<{ light: RunId[][]; long: RunId[] }> {
  const entries = await entriesOf(db, ids)
  const weigh = (id: RunId) => entries.get(id) ?? 0
  const isLong = (id: RunId) => weigh(id) > MOST_TO_CLOSE
  const short = ids.filter((id) => !isLong(id)).toSorted((a, b) => weigh(a) - weigh(b))
  return { light: piecesOf(short, weigh), long: ids.filter(isLong) }
}

function piecesOf(ids: readonly RunId[], weigh: (id: RunId) => number): RunId[][] {
  const pieces: RunId[][] = []
  let left = 0
  for (const id of ids) {
    const weight = weigh(id)
    if (pieces.length === 0 || weight > left) {
      pieces.push([])
      left = MOST_TO_CLOSE
    }
    pieces.at(-1)!.push(id)
    left -= weight
  }
  return pieces
}
