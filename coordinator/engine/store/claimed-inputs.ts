import type { RunId } from '@windlass/shared/ids.ts'
import type { Db } from '../../db/client.ts'
import type { Claimed } from './claim.ts'

/**
 * Bytes of inputs that a claim itself tells; others are read when it has committed. The server holds its locks until the
 * last byte of the answer has been taken: so much goes into the buffers of a connection whose other end stands still.
 */
export const TOLD_BYTES = 32 * 1024

/** As the claim tells it. */
export type Told = Omit<Claimed, 'input'> & { input: string | null }

/** With the inputs that the claim has not told. Nobody holds the rows any more; an input never changes. */
export async function withInputs(db: Db, rows: readonly Told[]): Promise<Claimed[]> {
  const untold = rows.filter(({ input }) => input === null).map(({ runId }) => runId)
  if (untold.length === 0) return rows as Claimed[]
  const read = await db<{ id: RunId; input: string }[]>`select id, input from runs where id = any(${untold})`
  const inputs = new Map(read.map(({ id, input }) => [id, input]))
  return rows.flatMap((row) => {
    const input = row.input ?? inputs.get(row.runId)
    return input === undefined ? [] : { ...row, input }
  })
}
