import { appendFileSync, writeFileSync } from 'node:fs'
import { type Comparison, compareRow, type Earlier, sentencesOf } from './compare.ts'
import { directionOf, type Failure, type Report, type Row } from './row.ts'

export interface ReportOptions {
  json: boolean
  /** File that gets the rows as JSON lines. */
  out?: string
  earlier?: Earlier
}

export interface Reporting {
  report: Report
  fail(failure: Failure): void
  /** Prints what missed its goal, what failed and what got worse. Returns false when something failed. */
  conclude(measuredAll: boolean): boolean
}

export function createReport({ json, out, earlier }: ReportOptions): Reporting {
  const rows: Row[] = []
  const failures: Failure[] = []
  const comparisons: Comparison[] = []
  if (out !== undefined) writeFileSync(out, '')
  if (!json) process.stdout.write(`${headOf(earlier !== undefined)}\n`)

  function write(line: (Row & { compared?: Comparison }) | Failure, text: string): void {
    if (out !== undefined) appendFileSync(out, `${JSON.stringify(line)}\n`)
    process.stdout.write(json ? `${JSON.stringify(line)}\n` : `${text}\n`)
  }
  return {
    report(given) {
      const row = { ...given, better: given.better ?? directionOf(given.unit) }
      rows.push(row)
      const comparison = earlier && compareRow(row, earlier.get(row.name))
      if (comparison) comparisons.push(comparison)
      write(comparison ? { ...row, compared: comparison } : row, shown(row, comparison))
    },
    fail(failure) {
      failures.push(failure)
      write(failure, line([failure.name, 'FAILED', failure.failed]))
    },
    conclude(measuredAll) {
      const missed = rows.filter(({ goal }) => goal && !goal.isMet).map(({ name }) => name)
      const absent = earlier && measuredAll ? [...earlier.keys()].filter((name) => !isNamed(name, rows)) : []
      const lines = [
        ...(missed.length > 0 ? [`missed: ${missed.join('; ')}`] : []),
        ...failures.map(({ name, failed }) => `failed: ${name} (${failed})`),
        ...(earlier ? sentencesOf(comparisons, absent) : []),
      ]
      const stream = json ? process.stderr : process.stdout
      if (lines.length > 0) stream.write(`\n${lines.join('\n')}\n`)
      return failures.length === 0
    },
  }
}

const isNamed = (name: string, rows: readonly Row[]) => rows.some((row) => row.name === name)

function shown(row: Row, comparison: Comparison | undefined): string {
  const ratio = row.ratio ? `${rounded(row.ratio.value)} × ${row.ratio.to}` : ''
  const goal = row.goal ? `${row.goal.isMet ? 'met   ' : 'MISSED'} ${row.goal.text}` : ''
  const beside = comparison ? [earlierShown(comparison)] : []
  const tail = [(row.repeats ?? []).map(rounded).join(' '), row.note ?? ''].filter(Boolean).join('  ')
  return line([row.name, `${rounded(row.value)} ${row.unit}`, ratio, goal, ...beside, tail])
}

function earlierShown({ earlier, change, noise, by }: Comparison): string {
  if (earlier === undefined || change === undefined) return 'no earlier figure'
  const sign = change > 0 ? '+' : ''
  const about = noise === undefined ? '' : ` ± ${rounded(noise)}`
  return `${rounded(earlier)}${by === 'ratio' ? ' ×' : ''} → ${sign}${rounded(change)} %${about}`
}

const WIDTHS = [58, 18, 26, 16, 26]

function headOf(isCompared: boolean): string {
  return line(['', 'value', 'ratio', 'goal', ...(isCompared ? ['earlier, change ± noise'] : []), 'repeats'])
}

function line(cells: readonly string[]): string {
  return cells
    .map((cell, i) => (i === cells.length - 1 ? cell : cell.padEnd(WIDTHS[i] ?? 0)))
    .join(' ')
    .trimEnd()
}

function rounded(value: number): string {
  if (!Number.isFinite(value) || Math.abs(value) >= 100) return Math.round(value).toString()
  if (value === 0) return '0'
  const digits = value.toPrecision(3)
  return digits.includes('.') ? digits.replace(/\.?0+$/, '') : digits
}
