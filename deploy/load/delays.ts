import { byRepeat, median, percentile } from './measure.ts'
import { atMost, type Report } from './row.ts'

export interface Delays {
  name: string
  /** Milliseconds, in the order of measurement. */
  samples: readonly number[]
  repeats: number
  /** Yardstick that was measured between the samples. The ratio is to its median. */
  against?: { to: string; samples: readonly number[] }
  /** Limits: ratios where there is a yardstick, else milliseconds. */
  most?: { p50?: number; p99?: number }
}

/** Reports a row for the median and one for the 99th percentile. */
export function reportDelays(report: Report, { name, samples, repeats, against, most = {} }: Delays): void {
  const parts = byRepeat(samples, repeats)
  const bases = against && byRepeat(against.samples, repeats).map(median)
  for (const [percent, p] of [['p50', 0.5] as const, ['p99', 0.99] as const]) {
    const value = percentile(samples, p)
    const values = parts.map((part) => percentile(part, p))
    const ratio = against && {
      to: against.to,
      value: value / median(against.samples),
      repeats: values.map((ms, i) => ms / bases![i]!),
    }
    const limit = most[percent]
    report({
      name: `${name}, ${percent}`,
      value,
      unit: 'ms',
      repeats: values,
      ...(ratio && { ratio }),
      ...(limit !== undefined && { goal: ratio ? atMost(ratio.value, limit, '×') : atMost(value, limit, 'ms') }),
    })
  }
}
