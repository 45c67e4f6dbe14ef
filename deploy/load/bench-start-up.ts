import type { RunId } from '@windlass/shared/ids.ts'
import type { BenchAgent, BenchInstance } from './bench-instance.ts'
import { ALL, type Cpu, meter, partsOf, reportCpu } from './cpu.ts'
import { reportDelays } from './delays.ts'
import { openPoster } from './http-load.ts'
import { bareSpawnMs, bareSpawns, byRepeat, median, now, wait } from './measure.ts'
import { atLeast, type Report } from './row.ts'
import { load, perSecond, settled } from './settled.ts'

/** Time for the agent to boot the next spare: what is measured is a warm agent, not the refill. */
const REFILL_MS = 100
const AWAY_MS = 60
/** Runs before the first sample, so that what is measured is a service in use and not one that has just started. */
const WARM_UP_RUNS = 1500
const WARM_UP_LINES = 20
const LINES_PER_REPEAT = 60
const CALLERS = 16

/** Trigger → the program's first statement and its first line, beside a bare `node -e 0`. */
export async function benchFirstLine(
  instance: BenchInstance,
  agent: BenchAgent,
  report: Report,
  repeats: number,
): Promise<void> {
  await load(instance, { slug: 'noop-reuse', runs: WARM_UP_RUNS, callers: CALLERS })
  const spare = await firstLines(instance, agent, { slug: 'first-line', pauseMs: REFILL_MS, repeats })
  const bare = median(spare.spawns)
  const spawns = byRepeat(spare.spawns, repeats).map(median)
  report({ name: 'bare node -e 0, spawn to exit p50', value: bare, unit: 'ms', repeats: spawns, better: 'neither' })
  const reuse = await firstLines(instance, agent, { slug: 'first-line-reuse', pauseMs: 5, repeats })
  const rows = { repeats, against: { to: 'bare spawn', samples: spare.spawns } }
  const most = { p50: 0.25, p99: 1 }
  reportDelays(report, { ...rows, name: 'trigger to first line, spare', samples: spare.began, most })
  reportDelays(report, { ...rows, name: 'trigger to first line, reuse', samples: reuse.began })
  reportDelays(report, { ...rows, name: 'first line has left the program, spare', samples: spare.left })
  reportDelays(report, { ...rows, name: 'first line has left the program, reuse', samples: reuse.left })
  reportCpu(report, { name: 'first line, spare', per: 'run', used: spare.cpu })
  reportCpu(report, { name: 'first line, reuse', per: 'run', used: reuse.cpu })
}

interface Lines {
  /** Milliseconds from the trigger's first byte to the program's first statement, and until its first line has left. */
  began: number[]
  left: number[]
  spawns: number[]
  /** CPU of one run, for each repeat. */
  cpu: Cpu[]
}

interface Asked {
  slug: string
  pauseMs: number
  repeats: number
}

/** Triggers one run at a time. It reads their outputs when all have ended: each request would be work in the way. */
async function firstLines(instance: BenchInstance, agent: BenchAgent, { slug, pauseMs, repeats }: Asked) {
  const { url, apiKey } = instance
  const poster = await openPoster({ url, path: `/v1/orgs/default/workflows/${slug}/runs`, apiKey, body: '{}' })
  const lines: Lines = { began: [], left: [], spawns: [], cpu: [] }
  const one = async () => {
    const sentAt = now()
    const { status, body } = await poster.post()
    if (status !== 201) throw new Error(`a trigger was refused with ${status}`)
    await wait(AWAY_MS)
    await settled(instance, () => Promise.resolve(true))
    await wait(pauseMs)
    return { sentAt, run: (JSON.parse(body) as { run: { id: RunId } }).run.id }
  }
  // Bundle, connections, prepared statements.
  for (let i = 0; i < WARM_UP_LINES; i++) await one()
  for (let i = 0; i < repeats; i++) {
    const sent: Awaited<ReturnType<typeof one>>[] = []
    const used = meter(partsOf(instance, agent.pid))
    while (sent.length < LINES_PER_REPEAT) {
      sent.push(await one())
      if (sent.length % 5 === 0) lines.spawns.push(await bareSpawnMs())
    }
    lines.cpu.push(used(LINES_PER_REPEAT))
    for (const { run, sentAt } of sent) {
      const { output } = await instance.client.runs.output({ run })
      const [began, left] = (output as [string, string]).map((ns) => Number(ns) / 1e6)
      lines.began.push(began! - sentAt)
      lines.left.push(left! - sentAt)
    }
  }
  poster.close()
  return lines
}

const LANES = 4
const SPAWNS = 100
const FRESH = 150
const REUSED = 2000
const WARM_UP_REUSED = 100

/** Goal in runs for each bare spawn: 400/s on a machine that spawns 65 processes a second. */
const REUSE_SPAWNS = 6

interface Measured {
  rate: number
  cpu: Cpu
}

/** No-op runs a second, from the first trigger to the last completed, in processes of their own and in reused ones. */
export async function benchProcesses(
  instance: BenchInstance,
  agent: BenchAgent,
  report: Report,
  repeats: number,
): Promise<void> {
  const bare: Measured[] = []
  const fresh: Measured[] = []
  const reuse: Measured[] = []
  const parts = partsOf(instance, agent.pid)
  const measure = async (slug: string, runs: number): Promise<Measured> => {
    const { tookMs, cpu } = await load(instance, { slug, runs, callers: CALLERS, parts })
    return { rate: perSecond(runs, tookMs), cpu }
  }
  await measure('noop-reuse', WARM_UP_REUSED)
  for (let i = 0; i < repeats; i++) {
    // Neighbours in time: the machine's speed drifts.
    const { perSecond: rate, cpuMs } = await bareSpawns(LANES, SPAWNS)
    bare.push({ rate, cpu: { programs: cpuMs, [ALL]: cpuMs } })
    fresh.push(await measure('noop-fresh', FRESH))
    reuse.push(await measure('noop-reuse', REUSED))
  }
  const [rates, cpus] = [bare.map(({ rate }) => rate), bare.map(({ cpu }) => cpu[ALL]!)]
  report({ name: 'bare node -e 0 spawns', value: median(rates), unit: '/s', repeats: rates, better: 'neither' })
  report({ name: 'bare node -e 0, CPU', value: median(cpus), unit: 'ms', repeats: cpus, better: 'neither' })
  reportRate(report, { name: 'no-op runs, fresh process, 8 slots', loads: fresh, bare, leastSpawns: 0.85 })
  const reused = 'no-op runs, reused process, one agent of 8 slots'
  reportRate(report, { name: reused, loads: reuse, bare, leastSpawns: REUSE_SPAWNS })
  const against = { to: 'bare spawn', used: bare.map(({ cpu }) => cpu) }
  const used = (loads: readonly Measured[]) => loads.map(({ cpu }) => cpu)
  reportCpu(report, { name: 'no-op runs, fresh process', per: 'run', used: used(fresh), against })
  reportCpu(report, { name: 'no-op runs, reused process', per: 'run', used: used(reuse) })
}

interface RateRow {
  name: string
  loads: readonly Measured[]
  bare: readonly Measured[]
  leastSpawns: number
}

function reportRate(report: Report, { name, loads, bare, leastSpawns }: RateRow): void {
  const rates = loads.map(({ rate }) => rate)
  const ratios = rates.map((rate, i) => rate / bare[i]!.rate)
  report({
    name,
    value: median(rates),
    unit: '/s',
    repeats: rates,
    ratio: { to: 'bare spawns', value: median(ratios), repeats: ratios },
    goal: atLeast(median(ratios), leastSpawns, '×'),
  })
}
