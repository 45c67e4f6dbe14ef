import type { BenchInstance } from './bench-instance.ts'
import { ALL, type Cpu, partsOf, reportCpu, sumOf } from './cpu.ts'
import { median } from './measure.ts'
import { peakMiB } from './processes.ts'
import { atLeast, atMost, type Report } from './row.ts'
import { load, type Loaded, perSecond } from './settled.ts'
import { type Skeleton, startSkeleton } from './skeleton.ts'

/** Number of no-op runs in a repeat; `WINDLASS_BENCH_NOOPS` changes it. */
const RUNS = Number(process.env['WINDLASS_BENCH_NOOPS'] ?? 12_000)
/** The skeleton is about three times as fast, and both should be measured for the same time. */
const BARE_RUNS = 3 * RUNS
const SLOTS = 512
/** Callers at once, each with its next trigger as soon as the last is answered. */
const CROWD = 256
const FEW = 64

/** Results of either of the two with one number of callers, one entry for each repeat. */
interface Loads {
  rates: number[]
  cpu: Cpu[]
}

const noLoads = (): Loads => ({ rates: [], cpu: [] })

/** Trigger to completed with agents that execute nothing: the coordinator's own ceiling. Every run is durable. */
export async function benchCoordinator(instance: BenchInstance, report: Report, repeats: number): Promise<void> {
  const skeleton = await startSkeleton(SLOTS)
  try {
    const agent = await instance.simulateAgent({ slots: SLOTS })
    const ours = new Map([CROWD, FEW].map((callers) => [callers, noLoads()]))
    const bare = new Map([CROWD, FEW].map((callers) => [callers, noLoads()]))
    const measure = async () => {
      // Neighbours in time: the machine's speed drifts. The first round warms up both.
      for (let i = -1; i < repeats; i++) {
        for (const callers of [CROWD, FEW]) {
          await loadSkeleton(skeleton, callers, i < 0 ? noLoads() : bare.get(callers)!)
          await loadProduct(instance, callers, i < 0 ? noLoads() : ours.get(callers)!)
        }
      }
    }
    const { peak } = await peakMiB(instance.coordinatorPid, measure)
    agent.close()
    for (const callers of [CROWD, FEW]) {
      reportSkeleton(report, callers, bare.get(callers)!)
      reportProduct(report, callers, ours.get(callers)!, bare.get(callers)!)
    }
    const name = 'memory, coordinator, peak under that load'
    report({ name, value: peak, unit: 'MiB', goal: atMost(peak, 260, 'MiB') })
  } finally {
    await skeleton.stop()
  }
}

/** The skeleton alone. */
export async function benchSkeleton(report: Report, repeats: number): Promise<void> {
  const skeleton = await startSkeleton(SLOTS)
  try {
    for (const callers of [CROWD, FEW]) {
      const loads = noLoads()
      for (let i = -1; i < repeats; i++) await loadSkeleton(skeleton, callers, i < 0 ? noLoads() : loads)
      reportSkeleton(report, callers, loads)
    }
  } finally {
    await skeleton.stop()
  }
}

async function loadSkeleton(skeleton: Skeleton, callers: number, into: Loads): Promise<void> {
  note(into, BARE_RUNS, await skeleton.load({ runs: BARE_RUNS, callers }))
}

async function loadProduct(instance: BenchInstance, callers: number, into: Loads): Promise<void> {
  note(into, RUNS, await load(instance, { slug: 'noop-fresh', runs: RUNS, callers, parts: partsOf(instance) }))
}

function note(into: Loads, runs: number, { tookMs, cpu }: Loaded): void {
  into.rates.push(perSecond(runs, tookMs))
  into.cpu.push(cpu)
}

const skeletonName = (callers: number) => `skeleton, ${callers} callers`

function reportSkeleton(report: Report, callers: number, { rates, cpu }: Loads): void {
  const name = skeletonName(callers)
  report({ name, value: median(rates), unit: 'runs/s', repeats: rates, better: 'neither' })
  reportCpu(report, { name, per: 'run', used: cpu, better: 'neither' })
}

function reportProduct(report: Report, callers: number, { rates, cpu }: Loads, skeleton: Loads): void {
  const ratios = rates.map((rate, i) => rate / skeleton.rates[i]!)
  const ratio = median(ratios)
  const isCrowd = callers === CROWD
  const name = isCrowd ? 'coordinator alone' : `coordinator alone, ${callers} callers`
  report({
    name: isCrowd ? 'coordinator alone, trigger to completed' : name,
    value: median(rates),
    unit: 'runs/s',
    repeats: rates,
    ratio: { to: 'skeleton', value: ratio, repeats: ratios },
    ...(isCrowd && { goal: atLeast(ratio, 0.4, '×') }),
  })
  // The skeleton's server is the counterpart of the coordinator.
  const used = skeleton.cpu.map(({ server, ...rest }) => {
    const parts: Cpu = { coordinator: server!, ...rest }
    return { ...parts, [ALL]: sumOf(parts) }
  })
  const goalMs = isCrowd ? { goalMs: 0.55 } : {}
  reportCpu(report, { name, per: 'run', used: cpu, against: { to: 'skeleton', used }, ...goalMs })
}
