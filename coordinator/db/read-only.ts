import { isConnectionLoss } from './client.ts'

/** SQLSTATE of a write to a standby, after a failover say, or to a database that was closed for writing. */
export const READ_ONLY = '25006'
/** SQLSTATE of a write for which the disk has no room. */
export const DISK_FULL = '53100'

/** What has to be done is the operator's business, who reads it in answers and in /readyz. */
export const TAKES_NO_WRITES = 'The database takes no writes: it is a standby, or was made read-only; try again.'

/** True when no write of anybody would have succeeded: no caller can bring that about. */
export function failedForAll(error: unknown): boolean {
  if (isConnectionLoss(error)) return true
  return error instanceof Error && 'code' in error && (error.code === READ_ONLY || error.code === DISK_FULL)
}
