import { print } from './terminal.ts'

/** A drawn table for a terminal; elsewhere a line per row with tabs between, no head, ready for `cut` and `awk`. */
export async function printTable(head: string[], rows: string[][]): Promise<void> {
  if (!process.stdout.isTTY) {
    for (const row of rows) print(row.map((cell) => cell.replace(/[\t\r\n]+/g, ' ')).join('\t'))
    return
  }
  // Loaded when it is needed: a pipe does not pay for it.
  const { default: Table } = await import('cli-table3')
  const table = new Table({
    head,
    chars: NO_LINES,
    style: { head: process.env['NO_COLOR'] ? [] : ['bold'], border: [], 'padding-left': 0 },
  })
  table.push(...rows)
  print(table.toString())
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
  for (const [name, value] of fields) print(`${name.padEnd(width)}  ${value}`)
}
