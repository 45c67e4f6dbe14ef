import type { Sql } from './client.ts'
import type { Fragment } from './newest.ts'

/**
 * A condition on rows that something else leads to: their key, or the index of a list. Written plainly it may lead as
 * well, by an index that begins with its column, and all that an org has is read and thrown away for one row. On tables
 * that were nearly empty when the plan was made all ways cost the same, and the plan stays until there are statistics.
 * No index serves a `coalesce`, and the planner takes it to be true of every second row, so that a list is still read
 * in its order up to its limit.
 */
export function onlyFilters(sql: Sql, condition: Fragment): Fragment {
  return sql`coalesce(${condition}, false)`
}

/**
 * The run with this id, for `cross join lateral`. `offset 0` keeps the order: first what names the run, then the run by
 * its key.
 */
export function runById(sql: Sql, id: Fragment): Fragment {
  return sql`select * from runs where runs.id = ${id} offset 0`
}
