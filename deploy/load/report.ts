/** One line of the bench. A ratio compares two things that were measured in the same run of the bench. */
export interface Row {
  name: string
  value: number
  unit: string
  /** What the value is held against, and where it should lie. */
  ratio?: { to: string; value: number }
  goal?: { text: string; isMet: boolean }
  /** Each repeat's value; `value` is their median. */
  repeats?: number[]
}

export type Report = (row: Row) => void

export function createReport(json: boolean): { report: Report; missed: () => string[] } {
  const missed: string[] = []
  if (!json) process.stdout.write(`${line(['', 'value', 'ratio', 'goal', 'repeats'])}\n`)
  return {
    report(row) {
      if (row.goal && !row.goal.isMet) missed.push(row.name)
      process.stdout.write(json ? `${JSON.stringify(row)}\n` : `${shown(row)}\n`)
    },
    missed: () => missed,
  }
}

function shown(row: Row): string {
  const ratio = row.ratio ? `${rounded(row.ratio.value)} × ${row.ratio.to}` : ''
  const goal = row.goal ? `${row.goal.isMet ? 'met   ' : 'MISSED'} ${row.goal.text}` : ''
  return line([row.name, `${rounded(row.value)} ${row.unit}`, ratio, goal, (row.repeats ?? []).map(rounded).join(' ')])
}

function line([name = '', value = '', ratio = '', goal = '', repeats = '']: string[]): string {
  return `${name.padEnd(44)} ${value.padEnd(16)} ${ratio.padEnd(34)} ${goal.padEnd(26)} ${repeats}`.trimEnd()
}

function rounded(value: number): string {
  if (value >= 100) return Math.round(value).toString()
  return value.toPrecision(3).replace(/\.?0+$/, '')
}

export const atMost = (value: number, limit: number, unit = ''): Row['goal'] => ({
  text: `≤ ${limit} ${unit}`.trim(),
  isMet: value <= limit,
})
export const atLeast = (value: number, limit: number, unit = ''): Row['goal'] => ({
  text: `≥ ${limit} ${unit}`.trim(),
  isMet: value >= limit,
})
