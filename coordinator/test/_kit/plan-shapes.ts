/** Plans as text without names: a rename leaves it as it is, another way to the rows changes it. */
import type { Db } from '../../db/client.ts'
import type { PlanNode } from './explained.ts'

interface Index {
  isUnique: boolean
  isPartial: boolean
  columns: string[]
}

export interface PlanShapes {
  /** One line for each step. Tables are numbered in the order in which all calls of this function meet them. */
  shapeOf(plan: PlanNode): string
}

const JOINS = new Set(['Nested Loop', 'Hash Join', 'Merge Join'])

export async function createPlanShapes(db: Db): Promise<PlanShapes> {
  const indexes = await readIndexes(db)
  const tables = numbered('table')
  const linesOf = (plan: PlanNode, steps: (name: string) => string, depth: number): string[] => [
    `${'  '.repeat(depth)}${relationOf(plan, steps)}${whatOf(plan, { indexes, tables, steps })}`,
    ...(plan.Plans ?? []).flatMap((below) => linesOf(below, steps, depth + 1)),
  ]
  return { shapeOf: (plan) => linesOf(plan, numbered('step'), 1).join('\n') }
}

/** Names by numbers: `table 1` is the first that was asked for. */
function numbered(what: string): (name: string) => string {
  const numbers = new Map<string, number>()
  return (name) => {
    if (!numbers.has(name)) numbers.set(name, numbers.size + 1)
    return `${what} ${numbers.get(name)}`
  }
}

/** What a step is to the one above it, where it is not simply read by it. */
function relationOf(plan: PlanNode, steps: (name: string) => string): string {
  const name = plan['Subplan Name']
  if (name?.startsWith('CTE ')) return `${steps(name.slice('CTE '.length))}: `
  if (plan['Parent Relationship'] === 'InitPlan') return 'once: '
  if (plan['Parent Relationship'] === 'SubPlan') return 'for each row: '
  return ''
}

interface Names {
  indexes: ReadonlyMap<string, Index>
  tables: (name: string) => string
  steps: (name: string) => string
}

function whatOf(plan: PlanNode, { indexes, tables, steps }: Names): string {
  const type = plan['Node Type']
  const table = plan['Relation Name'] === undefined ? '' : ` ${tables(plan['Relation Name'])}`
  const filtered = plan.Filter === undefined ? '' : ', filtered'
  if (type === 'ModifyTable') return `${plan.Operation!.toLowerCase()}${table}${onConflict(plan)}`
  if (type === 'CTE Scan') return `read ${steps(plan['CTE Name']!)}${filtered}`
  if (JOINS.has(type)) {
    const compared = plan['Join Filter'] === undefined ? '' : ', compared'
    return `${type}, ${plan['Join Type']}${compared}${filtered}`.toLowerCase()
  }
  if (type === 'Seq Scan') return `read all of${table}${filtered}`
  const index = indexes.get(plan['Index Name'] ?? '')
  if (!index) return `${type.toLowerCase()}${table}${filtered}`
  const way = plan['Scan Direction'] === 'Backward' ? ', backwards' : ''
  return `read${table} ${byIndex(index, plan['Index Cond'])}${index.isPartial ? ', partial' : ''}${way}${filtered}`
}

const onConflict = (plan: PlanNode) =>
  plan['Conflict Resolution'] === undefined ? '' : `, on conflict ${plan['Conflict Resolution'].toLowerCase()}`

/**
 * How much of an index leads to the rows: its first columns, as far as they are equal to something. What else is looked
 * at in the index is a range, or a column behind one that is left out.
 */
function byIndex({ isUnique, columns }: Index, condition: string | undefined): string {
  if (condition === undefined) return 'from end to end'
  const parts = condition.split(' AND ')
  const isEqual = (column: string) => parts.some((part) => columnOf(part) === column && / = /.test(part))
  const firstOther = columns.findIndex((column) => !isEqual(column))
  const leading = firstOther === -1 ? columns.length : firstOther
  if (isUnique && leading === columns.length) return parts.some((part) => / = ANY /.test(part)) ? 'by keys' : 'by key'
  const others = parts.length - leading
  return `by ${leading} of ${columns.length} columns${others > 0 ? ` and ${others} more in the index` : ''}`
}

const columnOf = (part: string) => part.match(/^\(*(\w+)/)?.[1]

async function readIndexes(db: Db): Promise<Map<string, Index>> {
  const rows = await db<(Index & { name: string })[]>`
    select c.relname as name, i.indisunique as is_unique, i.indpred is not null as is_partial,
           array(select pg_get_indexdef(i.indexrelid, n, true) from generate_series(1, i.indnkeyatts) n) as columns
    from pg_index i
    join pg_class c on c.oid = i.indexrelid
    where c.relnamespace = 'public'::regnamespace`
  return new Map(rows.map((row) => [row.name, row]))
}
