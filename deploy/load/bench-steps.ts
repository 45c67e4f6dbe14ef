import { type BenchInstance, until } from './bench-instance.ts'
import { runsPerSecond } from './bench-start-up.ts'
import { median } from './measure.ts'
import { atLeast, atMost, type Report } from './report.ts'

const TOGETHER = 5000
const IN_TURN = 400

/** Steps whose results are committed before they resolve. */
export async function benchSteps(instance: BenchInstance, report: Report, repeats: number): Promise<void> {
  const together: number[] = []
  const inTurn: number[] = []
  const commits: number[] = []
  await instance.db`create table bench_commits (at timestamptz)`
  for (let i = -1; i < repeats; i++) {
    const bothMs = await outputOf(instance, 'steps', { count: TOGETHER, together: true })
    const turnMs = await outputOf(instance, 'steps', { count: IN_TURN, together: false })
    const commitMs = await commitOfOneRowMs(instance)
    if (i < 0) continue
    commits.push(commitMs)
    together.push(TOGETHER / (bothMs / 1000))
    inTurn.push(turnMs / IN_TURN)
  }
  report({
    name: 'steps of one run, all at once',
    value: median(together),
    unit: '/s',
    repeats: together,
    goal: atLeast(median(together), 3000, '/s'),
  })
  const ratio = median(inTurn.map((ms, i) => ms / commits[i]!))
  report({ name: 'bare commit of one row', value: median(commits), unit: 'ms', repeats: commits })
  report({
    name: 'steps of one run, one after another',
    value: median(inTurn),
    unit: 'ms each',
    repeats: inTurn,
    ratio: { to: 'bare commit', value: ratio },
    goal: atMost(median(inTurn), 1.5, 'ms'),
  })
}

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

async function outputOf({ client }: BenchInstance, workflow: string, input: unknown): Promise<number> {
  const { run } = await client.runs.trigger({ workflow, input })
  await until(async () => (await client.runs.get({ run: run.id })).run.finishedAt !== null, 120_000)
  const { output } = await client.runs.output({ run: run.id })
  return Number(output)
}

const CHILDREN = 1000

/** One run that calls a thousand others at once, beside the same number of runs that are triggered. */
export async function benchFanOut(instance: BenchInstance, report: Report, repeats: number): Promise<void> {
  const triggered: number[] = []
  const called: number[] = []
  for (let i = -1; i < repeats; i++) {
    const alone = await runsPerSecond(instance, 'noop-reuse', CHILDREN)
    const since = performance.now()
    const count = await outputOf(instance, 'fan-out', { children: CHILDREN })
    if (count !== CHILDREN) throw new Error(`${count} of ${CHILDREN} children came back`)
    if (i < 0) continue
    triggered.push(alone)
    called.push(CHILDREN / ((performance.now() - since) / 1000))
  }
  const ratio = median(called.map((value, i) => value / triggered[i]!))
  report({ name: 'no-op runs, triggered', value: median(triggered), unit: '/s', repeats: triggered })
  report({
    name: `children, ${CHILDREN} calls of one run`,
    value: median(called),
    unit: '/s',
    repeats: called,
    ratio: { to: 'triggered', value: ratio },
  })
}
