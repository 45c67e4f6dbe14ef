import type { Table } from '@windlass/shared/ops/op.ts'
import { tellNextPage } from './next-page.ts'
import { printTable } from './table.ts'
import { cellTime, note } from './terminal.ts'

/** The items of a list as the row has them shown, and where the next page is. */
export async function printItems(table: Table, answer: object): Promise<void> {
  const items = Object.values(answer).find((field): field is object[] => Array.isArray(field)) ?? []
  const paths = Object.values(table.columns)
  await printTable(
    Object.keys(table.columns),
    items.map((item) => paths.map((path) => cellOf(path, item))),
  )
  if (items.length === 0 && table.none !== undefined) note(table.none)
  tellNextPage((answer as { nextCursor?: string | null }).nextCursor ?? null)
}

function cellOf(path: string, item: object): string {
  const value = path
    .split('.')
    .reduce<unknown>((inner, name) => (inner as Record<string, unknown> | null)?.[name], item)
  if (value === null || value === undefined) return '-'
  if (path.endsWith('At')) return cellTime(value as number)
  return typeof value === 'string' ? value : JSON.stringify(value)
}
