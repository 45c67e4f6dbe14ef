/** SQLSTATE of a write to a standby, after a failover say, or to a database that was closed for writing. */
export const READ_ONLY = '25006'

/** What has to be done is the operator's business, who reads it in answers and in /readyz. */
export const TAKES_NO_WRITES =
  'The database takes no writes: it is a standby, or was made read-only. Nothing was written; try again.'
