import type { BenchAgent, BenchInstance } from './bench-instance.ts'
import { type Cpu, meter, partsOf, reportCpu } from './cpu.ts'
import { median } from './measure.ts'
import { atLeast, atMost, type Report } from './row.ts'
import { hasFinished, load, perSecond, settled } from './settled.ts'

const TOGETHER = 5000
const IN_TURN = 400

/** Steps whose results are committed before they resolve. */
export async function benchSteps(
  instance: BenchInstance,
  agent: BenchAgent,
  report: Report,
  repeats: number,
): Promise<void> {
  const together: number[] = []
  const inTurn: number[] = []
  const commits: number[] = []
  const cpu = { together: [] as Cpu[], inTurn: [] as Cpu[] }
  const parts = partsOf(instance, agent.pid)
  await instance.db`create table if not exists bench_commits (at timestamptz)`
  for (let i = -1; i < repeats; i++) {
    const ofBoth = meter(parts)
    const both = await outputOf(instance, 'steps', { count: TOGETHER, together: true })
    const bothCpu = ofBoth(TOGETHER)
    const ofTurn = meter(parts)
    const turn = await outputOf(instance, 'steps', { count: IN_TURN, together: false })
    const turnCpu = ofTurn(IN_TURN)
    const commitMs = await commitOfOneRowMs(instance)
    if (i < 0) continue
    commits.push(commitMs)
    together.push(perSecond(TOGETHER, both.output))
    inTurn.push(turn.output / IN_TURN)
    cpu.together.push(bothCpu)
    cpu.inTurn.push(turnCpu)
  }
  report({
    name: 'steps of one run, all at once',
    value: median(together),
    unit: '/s',
    repeats: together,
    goal: atLeast(median(together), 3000, '/s'),
  })
  const ratios = inTurn.map((ms, i) => ms / commits[i]!)
  report({ name: 'bare commit of one row', value: median(commits), unit: 'ms', repeats: commits, better: 'neither' })
  report({
    name: 'steps of one run, one after another',
    value: median(inTurn),
    unit: 'ms each',
    repeats: inTurn,
    ratio: { to: 'bare commit', value: median(ratios), repeats: ratios },
    goal: atMost(median(ratios), STEP_COMMITS, '×'),
  })
  reportCpu(report, { name: 'steps, all at once', per: 'step', used: cpu.together })
  reportCpu(report, { name: 'steps, one after another', per: 'step', used: cpu.inTurn })
}

/** Goal in bare commits: 1.5 ms where a bare commit takes 0.38 ms. */
const STEP_COMMITS = 4

/** What the disk and the database take at least. */
async function commitOfOneRowMs({ db }: BenchInstance): Promise<number> {
  const samples: number[] = []
  for (let i = 0; i < 200; i++) {
    const since = performance.now()
    await db`insert into bench_commits values (now())`
    samples.push(performance.now() - since)
  }
  return median(samples)
}

/** Triggers a run, waits for its end and reads its output. */
async function outputOf(instance: BenchInstance, workflow: string, input: unknown) {
  const { client } = instance
  const since = performance.now()
  const { run } = await client.runs.trigger({ workflow, input })
  const until = await settled(instance, () => hasFinished(instance, run.id))
  const { output } = await client.runs.output({ run: run.id })
  return { output: Number(output), tookMs: until - since }
}

const CHILDREN = 1000
const CALLERS = 16

/** One run that calls a thousand others at once, beside the same number of runs that are triggered. */
export async function benchFanOut(instance: BenchInstance, report: Report, repeats: number): Promise<void> {
  const triggered: number[] = []
  const called: number[] = []
  for (let i = -1; i < repeats; i++) {
    const { tookMs } = await load(instance, { slug: 'noop-reuse', runs: CHILDREN, callers: CALLERS })
    const { output, tookMs: calledMs } = await outputOf(instance, 'fan-out', { children: CHILDREN })
    if (output !== CHILDREN) throw new Error(`${output} of ${CHILDREN} children came back`)
    if (i < 0) continue
    triggered.push(perSecond(CHILDREN, tookMs))
    called.push(perSecond(CHILDREN, calledMs))
  }
  const ratios = called.map((value, i) => value / triggered[i]!)
  report({ name: 'no-op runs, triggered', value: median(triggered), unit: '/s', repeats: triggered })
  report({
    name: `children, ${CHILDREN} calls of one run`,
    value: median(called),
    unit: '/s',
    repeats: called,
    ratio: { to: 'triggered', value: median(ratios), repeats: ratios },
  })
}
