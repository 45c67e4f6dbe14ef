import type { BenchInstance } from './bench-instance.ts'
import { median } from './measure.ts'
import { ownCpuMs, treeCpuMs } from './processes.ts'
import { atMost, type Report, type Row } from './row.ts'

/** Milliseconds of CPU, by part. */
export type Cpu = Record<string, number>

/** Functions that read how much CPU each part has spent so far, in milliseconds. */
export type CpuParts = Record<string, () => number>

/** The parts of an installation, and the bench itself with the agents that it simulates. */
export function partsOf({ coordinatorPid, postgresPid }: BenchInstance, agentPid?: number): CpuParts {
  return {
    coordinator: () => treeCpuMs(coordinatorPid),
    PostgreSQL: () => treeCpuMs(postgresPid),
    ...(agentPid !== undefined && {
      agent: () => ownCpuMs(agentPid),
      programs: () => treeCpuMs(agentPid) - ownCpuMs(agentPid),
    }),
    bench: () => ownCpuMs(process.pid),
  }
}

/** Starts to measure. The function that it returns tells what each part has spent since, divided by `count`. */
export function meter(parts: CpuParts): (count: number) => Cpu {
  const read = () => Object.entries(parts).map(([part, ms]) => [part, ms()] as const)
  const before = new Map(read())
  return (count) => Object.fromEntries(read().map(([part, ms]) => [part, (ms - before.get(part)!) / count]))
}

export const sumOf = (cpu: Cpu) => Object.values(cpu).reduce((sum, ms) => sum + ms, 0)

export interface CpuRows {
  /** Name of the load, such as `no-op runs, reused process`. */
  name: string
  per: 'run' | 'step' | '1,000 lines'
  /** CPU of one of them, for each repeat. */
  used: readonly Cpu[]
  /** Yardstick for each repeat, by part. Parts that it does not name get no ratio. */
  against?: { to: string; used: readonly Cpu[] }
  /** Limit for all parts together. */
  goalMs?: number
  better?: Row['better']
}

/** Name of the sum of all parts. */
export const ALL = 'all'

/** Reports a row for each part with its share, and one for the sum. */
export function reportCpu(report: Report, { name, per, used, against, goalMs, better }: CpuRows): void {
  const whole = used.map((cpu): Cpu => ({ ...cpu, [ALL]: sumOf(cpu) }))
  const all = median(whole.map((cpu) => cpu[ALL]!))
  for (const part of Object.keys(whole[0] ?? {})) {
    const repeats = whole.map((cpu) => cpu[part]!)
    const value = median(repeats)
    const ratios = against && repeats.map((ms, i) => ms / (against.used[i]?.[part] ?? Number.NaN))
    report({
      name: `${name}, CPU per ${per}: ${part}`,
      value,
      unit: 'ms',
      repeats,
      ...(better && { better }),
      ...(ratios?.every(Number.isFinite) && { ratio: { to: against!.to, value: median(ratios), repeats: ratios } }),
      ...(part === ALL && goalMs !== undefined && { goal: atMost(value, goalMs, 'ms') }),
      ...(part !== ALL && { note: `${Math.round((value / all) * 100)} % of all` }),
    })
  }
}
