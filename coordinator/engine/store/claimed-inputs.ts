import type { RunId } from '@windlass/shared/ids.ts'
import type { Db } from '../../db/client.ts'

/**
 * Bytes of inputs that a claim itself tells; others are read when it has committed. The server holds its locks until
 * the last byte of the answer has been taken: so much goes into the buffers of a connection whose other end stands
 * still.
 */
export const INLINE_INPUT_BYTES = 32 * 1024

/** What a claim has given out, as its statement tells it. */
interface ClaimRow {
  runId: RunId
  input: string | null
}

/** With the inputs that the claim has left out. Nobody holds the rows any more; an input never changes. */
export async function withInputs<T extends ClaimRow>(db: Db, rows: readonly T[]): Promise<(T & { input: string })[]> {
  const others = rows.filter(({ input }) => input === null).map(({ runId }) => runId)
  const inputs = new Map(rows.map(({ runId, input }) => [runId, input]))
  if (others.length > 0) {
    const read = await db<{ id: RunId; input: string }[]>`select id, input from runs where id = any(${others})`
    for (const { id, input } of read) inputs.set(id, input)
  }
  return rows.flatMap((row) => {
    const input = inputs.get(row.runId) ?? null
    return input === null ? [] : { ...row, input }
  })
}
