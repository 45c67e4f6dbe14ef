import type Postgres from 'postgres'
import type { Sql } from './client.ts'

/** A piece of a statement. */
export type Fragment = Postgres.Fragment

/** A list of the newest among rows that share the first columns of an index, whose last column is their id. */
export interface Newest {
  /** Of the index, in its order, without the id. No other condition may name their values. */
  columns: readonly Fragment[]
  values: readonly (string | Fragment)[]
  id: Fragment
  /** Only ids behind the one, and before the other. */
  after?: string | undefined
  before?: string | undefined
}

/** Sorts behind all ids. */
export const BEHIND_ALL = '~'

/**
 * The rows as one range of that index, and its order as theirs. With `=` they might as well be read by another index, with a look at
 * each row; and that is what the planner does with values that it takes for the only ones. In a database where one org has a million
 * runs, each list of a small org would read them all.
 */
export function newest(sql: Sql, { columns, values, id, after = '', before = BEHIND_ALL }: Newest) {
  const key = [...columns, id].reduce((list, column) => sql`${list}, ${column}`)
  const given = values.reduce<Fragment>((list, value) => sql`${list}${value}, `, sql``)
  const order = columns.reduce<Fragment>((list, column) => sql`${list}${column} desc, `, sql``)
  return {
    where: sql`(${key}) > (${given}${after}) and (${key}) < (${given}${before})`,
    order: sql`${order}${id} desc`,
  }
}
