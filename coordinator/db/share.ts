import type { Sql } from './client.ts'
import type { Fragment } from './newest.ts'

/** Of each org in any case. */
const LEAST = 10

/**
 * How many rows to read of each org, as `each`, where a list has `limit` rows of all in turn: twice its share, as
 * others may have less. Reading `limit` of each took 0.8 s with 500 orgs. `orgs`: selects how many of them have some.
 */
export function shareOf(sql: Sql, orgs: Fragment, limit: number): Fragment {
  const share = sql`ceil(${2 * limit}::float8 / greatest(1, (${orgs})))`
  return sql`select greatest(${LEAST}::int, ${share})::bigint as each`
}
