/** One line of the bench. A ratio compares two things that were measured in the same run of the bench. */
export interface Row {
  name: string
  value: number
  unit: string
  /** Direction of an improvement; `neither` for rows that describe the machine. Derived from the unit by default. */
  better?: Direction
  /** Comparison with a yardstick. */
  ratio?: Ratio
  /** Limit that the row should keep. */
  goal?: { text: string; isMet: boolean }
  /** Each repeat's value; `value` is their median, or what all samples of all repeats give together. */
  repeats?: number[]
  /** Text behind the figures. */
  note?: string
}

export type Direction = 'higher' | 'lower' | 'neither'

export interface Ratio {
  to: string
  value: number
  /** Each repeat's ratio. */
  repeats?: number[]
}

/** Takes the place of rows that could not be measured. */
export interface Failure {
  name: string
  failed: string
}

export type Report = (row: Row) => void

/** Higher rates are better; of everything else, less is better. */
export function directionOf(unit: string): Direction {
  return unit.endsWith('/s') ? 'higher' : 'lower'
}

export const atMost = (value: number, limit: number, unit = ''): Row['goal'] => ({
  text: `≤ ${limit} ${unit}`.trim(),
  isMet: value <= limit,
})
export const atLeast = (value: number, limit: number, unit = ''): Row['goal'] => ({
  text: `≥ ${limit} ${unit}`.trim(),
  isMet: value >= limit,
})
