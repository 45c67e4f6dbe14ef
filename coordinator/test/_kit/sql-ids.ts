import type Postgres from 'postgres'
import type { Sql } from '../../db/client.ts'

type Fragment = Postgres.Fragment

const ALPHABET = '0123456789abcdefghjkmnpqrstvwxyz'

/**
 * Ids as `newId` makes them, for rows that `generate_series` makes by the hundred thousand. The time is in the first ten
 * characters; a number in the rest tells those of one millisecond apart. `ms` and `n` are expressions of bigint.
 */
export function sqlId(sql: Sql, prefix: string, ms: Fragment, n: Fragment): Fragment {
  const digit = (shift: number) => sql`substr(${ALPHABET}::text, ((${ms} >> ${shift}::int) & 31)::int + 1, 1)`
  const digits = [45, 40, 35, 30, 25, 20, 15, 10, 5, 0].map(digit)
  const joined = digits.reduce((text, next) => sql`${text} || ${next}`)
  return sql`${`${prefix}_`}::text || ${joined} || lpad((${n})::text, 16, '0')`
}
