import type { Direction, Failure, Ratio, Row } from './row.ts'

/** Rows of an earlier run of the bench, by their names. */
export type Earlier = Map<string, Row | Failure>

/** A row beside the same row of an earlier run. */
export interface Comparison {
  name: string
  /** Which figures of the two rows are compared. */
  by: 'value' | 'ratio'
  earlier?: number
  /** Percent of the earlier figure; positive when the figure has grown. */
  change?: number
  /** Percent, from `noiseOf` of both. Undefined when one of the two runs has too few repeats. */
  noise?: number
  isWorse: boolean
}

/** The end of the bench names every change for the worse above this. */
const WORSE_PERCENT = 5
/** Fewer repeats say next to nothing about how far the next one would lie off. */
const FEWEST_REPEATS = 3
/**
 * Names of what contains no code of the product. A ratio to it takes the speed of the machine out of the figure, so the
 * ratio is compared. A ratio to another row of the product is not: it gets worse when that other row gets better.
 */
const YARDSTICK = /^(bare|skeleton)\b/

/** Reads what `--json` or `--out` wrote. It skips lines that are no rows, such as those that `npm run` prints first. */
export function parseRows(text: string): Earlier {
  const rows: Earlier = new Map()
  for (const line of text.split('\n')) {
    if (!line.startsWith('{')) continue
    const row = rowOf(line)
    if (row) rows.set(row.name, row)
  }
  return rows
}

/** Nothing for a line that is none of ours, or that was cut off. */
function rowOf(line: string): Row | Failure | undefined {
  try {
    const row = JSON.parse(line) as Row | Failure
    const isWhole = typeof row.name === 'string' && ('failed' in row || Number.isFinite(row.value))
    return isWhole ? row : undefined
  } catch {
    return undefined
  }
}

export function compareRow(row: Row, earlier: Row | Failure | undefined): Comparison {
  if (!earlier || 'failed' in earlier) return { name: row.name, by: 'value', isWorse: false }
  const by = isSameYardstick(row.ratio, earlier.ratio) ? 'ratio' : 'value'
  const [after, before] = [figureOf(row, by), figureOf(earlier, by)]
  const change = changeOf(after.value, before.value)
  const noises = [noiseOf(after), noiseOf(before)]
  const [one, other] = noises
  return {
    name: row.name,
    by,
    earlier: before.value,
    change,
    // Independent errors add up as the root of the sum of their squares.
    ...(one !== undefined && other !== undefined && { noise: Math.hypot(one, other) }),
    isWorse: worsening(change, row.better) > WORSE_PERCENT,
  }
}

interface Figure {
  value: number
  repeats?: readonly number[]
}

/** A ratio without repeats of its own takes the noise of its value. */
function figureOf(row: Row, by: 'value' | 'ratio'): Figure {
  if (by === 'value' || !row.ratio) return row
  if (row.ratio.repeats) return row.ratio
  const scale = row.ratio.value / row.value
  return { value: row.ratio.value, ...(row.repeats && { repeats: row.repeats.map((one) => one * scale) }) }
}

/** Earlier versions of the bench wrote the yardstick's figure behind its name: `bare (31000)`. */
function isSameYardstick(one: Ratio | undefined, other: Ratio | undefined): boolean {
  const nameOf = (ratio: Ratio | undefined) => ratio?.to.replace(/ \([^)]*\)$/, '')
  const name = nameOf(one)
  return name !== undefined && name === nameOf(other) && YARDSTICK.test(name)
}

function changeOf(after: number, before: number): number {
  if (after === before) return 0
  return before === 0 ? Math.sign(after) * Infinity : ((after - before) / Math.abs(before)) * 100
}

function worsening(change: number, better: Direction | undefined): number {
  if (better === 'lower') return change
  return better === 'higher' ? -change : 0
}

/** Half the distance between the least and the greatest repeat, in percent of the value. */
export function noiseOf({ value, repeats = [] }: Figure): number | undefined {
  if (repeats.length < FEWEST_REPEATS || value === 0) return undefined
  return ((Math.max(...repeats) - Math.min(...repeats)) / 2 / Math.abs(value)) * 100
}

/** Sentences for the end of the bench. `absent`: rows that only the earlier run has. */
export function sentencesOf(comparisons: readonly Comparison[], absent: readonly string[]): string[] {
  const worse = comparisons.filter((one) => one.isWorse)
  const isBeyond = ({ change, noise }: Comparison) => noise !== undefined && Math.abs(change!) > noise
  const isWithin = ({ change, noise }: Comparison) => noise !== undefined && Math.abs(change!) <= noise
  const added = comparisons.filter(({ earlier }) => earlier === undefined).map(({ name }) => name)
  const limit = `worse by more than ${WORSE_PERCENT} %`
  return [
    ...listed(`${limit}, beyond their noise`, worse.filter(isBeyond).map(changed)),
    ...listed(`${limit}, within their noise`, worse.filter(isWithin).map(changed)),
    ...listed(
      `${limit}, with too few repeats to tell their noise`,
      worse.filter(({ noise }) => noise === undefined).map(changed),
    ),
    ...(worse.length === 0 && comparisons.length > added.length ? [`nothing is ${limit}`] : []),
    ...listed('only in this run', added),
    ...listed('only in the earlier run', absent),
  ]
}

const listed = (what: string, names: readonly string[]) => (names.length > 0 ? [`${what}: ${names.join('; ')}`] : [])

function changed({ name, change, by }: Comparison): string {
  const percent = Number.isFinite(change) ? `${change! > 0 ? '+' : ''}${change!.toFixed(1)} %` : 'from zero'
  return `${name} (${percent}${by === 'ratio' ? ' of the ratio' : ''})`
}
