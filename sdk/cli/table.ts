import { stripVTControlCharacters } from 'node:util'
import { LINE_BREAK } from '@windlass/shared/line-break.ts'
import { linesOf, note, print, safe } from './terminal.ts'

const GAP = 1
/** Text below this many characters says nothing; what stands last is what a person reads. */
const LEAST = 8
const LEAST_LAST = 30
/** People copy ids out of a table: they are whole or not there. */
const UNCUT = /^[a-z]+_[0-9a-z]{26}$|^\d[\d:. -]*$/

const BREAKS = new RegExp(`(?:\\t|${LINE_BREAK.source})+`, 'g')

/**
 * A drawn table for a terminal; elsewhere a line per row with tabs between, no head, ready for `cut` and `awk`. A name
 * that ends in `?` is of a column that a narrow terminal does without, the last ones first; long texts are cut there.
 */
export async function printTable(head: string[], rows: string[][]): Promise<void> {
  if (!process.stdout.isTTY) {
    for (const row of rows) print(row.map((cell) => cell.replace(BREAKS, ' ')).join('\t'))
    return
  }
  if (rows.length === 0) return
  const all = [head.map((name) => name.replace(/\?$/, '')), ...rows.map((row) => row.map(oneLine))]
  const columns = head.map((name, index) =>
    columnOf(
      name.endsWith('?'),
      all.map((row) => row[index] ?? ''),
      index === head.length - 1 ? LEAST_LAST : LEAST,
    ),
  )
  // A terminal that does not know its size says 0.
  const shown = fitting(columns, process.stdout.columns || 80)
  // Loaded when it is needed: a pipe does not pay for it.
  const { default: Table } = await import('cli-table3')
  const table = new Table({
    head: shown.map(({ cells }) => cells[0] ?? ''),
    chars: NO_LINES,
    colWidths: shown.map(({ width }) => width + GAP),
    style: { head: process.env['NO_COLOR'] ? [] : ['bold'], border: [], 'padding-left': 0, 'padding-right': GAP },
  })
  table.push(...rows.map((_, index) => shown.map(({ cells }) => cells[index + 1] ?? '')))
  for (const line of table.toString().split('\n')) print(line.trimEnd())
  const left = columns.length - shown.length
  if (left > 0) note(`${left} more ${left === 1 ? 'column' : 'columns'} in a wider terminal, or with --json.`)
}

/** What others have written may hold line breaks, and worse. */
function oneLine(cell: string): string {
  return safe(cell.replace(/\s*[\t\r\n]\s*/g, ' '), process.stdout)
}

interface Column {
  cells: string[]
  isOptional: boolean
  width: number
  /** Rather than narrower than this, others are left out. */
  wanted: number
  /** As narrow as it may become. */
  least: number
}

function columnOf(isOptional: boolean, cells: string[], wanted: number): Column {
  const widths = cells.map((cell) => stripVTControlCharacters(cell).length)
  const width = Math.max(...widths)
  const isUncut = cells.slice(1).some((cell) => UNCUT.test(cell))
  const narrow = (least: number) => (isUncut ? width : Math.min(width, Math.max(least, widths[0] ?? 0)))
  return { cells, isOptional, width, wanted: narrow(wanted), least: narrow(LEAST) }
}

/** The columns that there is room for, the widest of them as narrow as needed. */
function fitting(columns: Column[], room: number): Column[] {
  const wanted = columns.reduce((all, column) => all + column.wanted + GAP, 0)
  const last = columns.findLastIndex(({ isOptional }) => isOptional)
  if (wanted > room && last !== -1) return fitting(columns.toSpliced(last, 1), room)
  const shown = columns.map((column) => ({ ...column }))
  for (let over = sum(shown) - room; over > 0; over--) {
    const widest = shown.filter((column) => column.width > column.least).sort((a, b) => b.width - a.width)[0]
    if (!widest) break
    widest.width--
  }
  return shown
}

function sum(columns: Column[]): number {
  return columns.reduce((all, { width }) => all + width + GAP, 0)
}

const NO_LINES = {
  ...Object.fromEntries(
    ['top', 'bottom', 'mid', 'left', 'right'].flatMap((side) =>
      [side, `${side}-mid`, `${side}-left`, `${side}-right`].map((name) => [name, '']),
    ),
  ),
  middle: '',
}

/** `name   value` lines, names aligned. */
export function printFields(fields: [name: string, value: string][]): void {
  const width = Math.max(...fields.map(([name]) => name.length))
  for (const [name, value] of fields) {
    // What follows a line break would pass for a field of its own.
    const [first = '', ...more] = linesOf(value).map((line) => safe(line, process.stdout))
    print([`${name.padEnd(width)}  ${first}`, ...more.map((line) => `${' '.repeat(width)}  │ ${line}`)].join('\n'))
  }
}
