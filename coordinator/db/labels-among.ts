import type { Sql } from './client.ts'
import { onlyFilters } from './by-key.ts'
import type { Fragment } from './newest.ts'

/**
 * Those of the labels that somebody asks for, by a table of these that is made once for all rows. A runner may have 50
 * with 64 characters each, of which others read all or nothing.
 */
export const labelsAmong = (sql: Sql, labels: Fragment, asked: readonly string[]): Fragment => sql`
  case
    when ${asked.length > 0} then array(
      select l.label
      from unnest(${labels}) as l (label)
      where ${onlyFilters(sql, sql`l.label in (select unnest(${[...asked]}::text[]))`)}
    )
    else '{}'
  end`
