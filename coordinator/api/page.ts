import type { AnyOp } from '@windlass/shared/ops/op.ts'
import { Fault } from '@windlass/shared/errors.ts'

/** A page was asked for with one row more than it holds: that row only tells whether there is another page. */
export function pageOf<T>(
  rows: T[],
  limit: number,
  keyOf: (row: T) => string | number,
): { rows: T[]; nextCursor: string | null } {
  const page = rows.slice(0, limit)
  const last = page.at(-1)
  return { rows: page, nextCursor: rows.length > limit && last !== undefined ? encode(keyOf(last)) : null }
}

/** Opaque to callers, so that what is in it may change. */
function encode(key: string | number): string {
  return Buffer.from(String(key)).toString('base64url')
}

/** The key of the last row that the caller has seen. */
export function decodeCursor(cursor: string | undefined, form: RegExp): string | undefined {
  if (cursor === undefined) return undefined
  const key = Buffer.from(cursor, 'base64url').toString()
  if (!form.test(key))
    throw new Fault(
      'VALIDATION_FAILED',
      { path: 'cursor' },
      'Pass `nextCursor` of the page before, as it came; or leave `cursor` out to start over.',
    )
  return key
}

/** Whether the row answers with pages. */
export function isPaged(row: AnyOp): boolean {
  return row.method === 'GET' && 'limit' in row.input.shape && 'cursor' in row.input.shape
}
