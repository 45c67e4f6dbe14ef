import type { Sql } from './client.ts'
import type { Fragment } from './newest.ts'

type Value = string | number | null | undefined
type ArrayType = 'text' | 'int' | 'bigint' | 'float8'
type TypeOf<V> = [V] extends [string | null | undefined]
  ? 'text'
  : [V] extends [number | null | undefined]
    ? Exclude<ArrayType, 'text'>
    : never
/** What no field holds as it is. */
type Computed<R> = readonly [ArrayType, (row: R, i: number) => Value]
/** `ordinality`: the row's number, from 1 on, by which the server knows them to be in order. */
type Column<R> = ArrayType | Computed<R> | 'ordinality'

/** `never` for a column that no field has, or one of another type. */
type Fitting<R, C> = {
  readonly [N in keyof C]: C[N] extends ArrayType ? (N extends keyof R ? TypeOf<R[N]> : never) : C[N]
}

/**
 * Rows for `from`, `join` and `using`: one array for each column, so that their number changes nothing in the
 * statement. `unnest(tx, 't', runs, { id: 'text', orgId: 'text', at: ['bigint', (run) => run.at.getTime()] })` is
 * `unnest($1::text[], $2::text[], $3::bigint[]) as t (id, org_id, at)`.
 */
export function unnest<R, const C extends Readonly<Record<string, Column<R>>>>(
  sql: Sql,
  alias: string,
  rows: readonly R[],
  columns: C & Fitting<R, C>,
): Fragment {
  const all = Object.entries<Column<R>>(columns)
  const arrays: (string | number | null)[][] = []
  for (const [name, column] of all) {
    if (column === 'ordinality') continue
    const read = typeof column === 'string' ? (row: R) => row[name as keyof R] as Value : column[1]
    arrays.push(rows.map((row, i) => read(row, i) ?? null))
  }
  return sql(templateOf(alias, all), ...arrays)
}

/** Postgres.js remembers each template for ever: the same columns have the same one. */
const templates = new Map<string, TemplateStringsArray>()

function templateOf(alias: string, columns: readonly [string, Column<never>][]): TemplateStringsArray {
  const types = columns.map(([, column]) => (typeof column === 'string' ? column : column[0]))
  const names = columns.map(([name]) => name.replace(/[A-Z]/g, (letter) => `_${letter.toLowerCase()}`))
  const rest = `as ${alias} (${names.join(', ')})`
  const key = `${types.join()} ${rest}`
  const known = templates.get(key)
  if (known) return known
  const casts = types.filter((type) => type !== 'ordinality').map((type) => `::${type}[]`)
  const isNumbered = casts.length < types.length
  if (isNumbered && types.at(-1) !== 'ordinality') throw new Error('ordinality: the last column')
  const end = `${casts.pop()})${isNumbered ? ' with ordinality' : ''} ${rest}`
  const parts = ['unnest(', ...casts.map((cast) => `${cast}, `), end]
  const template = Object.assign(parts, { raw: parts })
  templates.set(key, template)
  return template
}
