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
 * `column = key` for a join with a table to which rows come and leave again, where what names them leads. When an old
 * snapshot keeps its dead rows, the planner takes it for empty and may begin with it: that passes over all of them, of
 * all orgs. An equality lets it read the table in the order of its key; from this it can only look keys up. The same
 * goes for an `order by` or a `distinct` of that column. Where a subquery asks for `exists`, `offset 0` does it.
 */
export function foundBy(sql: Sql, column: Fragment, key: Fragment): Fragment {
  return sql`${column} = any(array[${key}])`
}

/**
 * The run with this id, for `cross join lateral`. `offset 0` keeps the order: first what names the run, then the run by
 * its key.
 */
export function runById(sql: Sql, id: Fragment): Fragment {
  return sql`select * from runs where runs.id = ${id} offset 0`
}

/**
 * Rows of a table in partitions that have one of these ids, which are of one month: see `byMonth`. A general plan for
 * the list alone reads all partitions; the two bounds leave it one. In a join with `unnest` they do harm: there each
 * partition is found by its row, and with the bounds all rows between them are read.
 */
export function amongIds(sql: Sql, column: Fragment, ids: readonly string[]): Fragment {
  const least = ids.reduce(min, ids[0] ?? '')
  const greatest = ids.reduce(max, '')
  return sql`${column} = any(${[...ids]}) and ${column} >= ${least} and ${column} <= ${greatest}`
}

const min = (a: string, b: string) => (a < b ? a : b)
const max = (a: string, b: string) => (a > b ? a : b)
