import type { RunId } from '@windlass/shared/ids.ts'
import { type BenchInstance, until } from './bench-instance.ts'
import { openPoster } from './http-load.ts'
import { familyOf, median, now, percentile, residentMiB, wait } from './measure.ts'
import { atMost, type Report } from './report.ts'

const WARM_UP = 10
const SAMPLES = 40
const SETTLED_MS = 20

/** An answer → the next line of a program that waits for it in its process. */
export async function benchWake(instance: BenchInstance, report: Report, repeats: number): Promise<void> {
  const questions = WARM_UP + SAMPLES * repeats
  const { run } = await instance.client.runs.trigger({ workflow: 'asks', input: { questions } })
  const answeredAt: number[] = []
  for (let i = 0; i < questions; i++) {
    answeredAt.push(await answer(instance, run.id, 'parked'))
    await until(async () => (await linesOf(instance, run.id)) > i + 1, 20_000)
  }
  const lines = await momentsOf(instance, run.id)
  const delays = answeredAt.map((at, i) => lines[i + 1]! - at).slice(WARM_UP)
  const p50 = median(delays)
  report({
    name: 'answer to next line, parked, p50',
    value: p50,
    unit: 'ms',
    goal: atMost(p50, 5, 'ms'),
  })
  report({ name: 'answer to next line, parked, p99', value: percentile(delays, 0.99), unit: 'ms' })
}

/** The same with an agent that keeps no process of a run that waits, beside the start of the same program. */
export async function benchEvictedWake(instance: BenchInstance, report: Report, repeats: number): Promise<void> {
  const agent = await instance.addAgent({ slots: 8, parkedMs: 0 })
  const cold: number[] = []
  const woken: number[] = []
  const poster = await openPoster({
    url: instance.url,
    path: '/v1/orgs/default/workflows/asks/runs',
    apiKey: instance.apiKey,
    body: '{"input":{"questions":1}}',
  })
  for (let i = -WARM_UP; i < SAMPLES * repeats; i++) {
    const triggeredAt = now()
    const { body } = await poster.post()
    const { run } = JSON.parse(body) as { run: { id: RunId } }
    const answeredAt = await answer(instance, run.id, 'evicted')
    await until(async () => (await instance.client.runs.get({ run: run.id })).run.finishedAt !== null, 20_000)
    const [first, second] = await momentsOf(instance, run.id)
    if (i < 0) continue
    cold.push(first! - triggeredAt)
    woken.push(second! - answeredAt)
  }
  poster.close()
  await agent.stop()
  const [coldP50, p50] = [median(cold), median(woken)]
  report({ name: 'trigger to first line of that program, p50', value: coldP50, unit: 'ms' })
  report({
    name: 'answer to next line, evicted, p50',
    value: p50,
    unit: 'ms',
    ratio: { to: 'cold start', value: p50 / coldP50 },
    goal: atMost(p50 / coldP50, 1.5, '×'),
  })
  report({ name: 'answer to next line, evicted, p99', value: percentile(woken, 0.99), unit: 'ms' })
}

/** Waits until the run asks, its process being where it should be, answers, and tells when. */
async function answer(instance: BenchInstance, run: RunId, process: 'parked' | 'evicted'): Promise<number> {
  let input: string | undefined
  await until(async () => {
    const [row] = await instance.db<{ place: string | null; id: string }[]>`
      select r.place, i.id
      from runs r
      join inputs i on i.run_id = r.id and i.status = 'open'
      where r.id = ${run} and r.status = 'awaiting_input'`
    if (!row || row.place !== (process === 'parked' ? 'parked' : null)) return false
    input = row.id
    return true
  }, 20_000)
  const poster = await openPoster({
    url: instance.url,
    path: `/v1/inputs/${input}/respond`,
    apiKey: instance.apiKey,
    body: '{"answer":true}',
  })
  // What is measured is a run at rest, and an agent that has its next spare.
  await wait(process === 'parked' ? SETTLED_MS : SETTLED_MS * 5)
  const at = now()
  const { status } = await poster.post()
  poster.close()
  if (status !== 200) throw new Error(`an answer was refused with ${status}`)
  return at
}

async function linesOf({ db }: BenchInstance, run: RunId): Promise<number> {
  const [row] = await db<[{ n: number }]>`
    select count(*)::int as n from run_events where run_id = ${run} and type = 'log.stdout'`
  return row.n
}

/** What the program has printed: the moments at which it came to each of its lines. */
async function momentsOf({ db }: BenchInstance, run: RunId): Promise<number[]> {
  const rows = await db<{ text: string }[]>`
    select data::json ->> 'text' as text
    from run_events
    where run_id = ${run} and type = 'log.stdout'
    order by cursor`
  return rows.map(({ text }) => Number(text))
}

const SLEEPERS = 20
const SLEEP_MS = 1200
const TIMES = 3

/** By how much a sleep in the hands of the coordinator is too long. */
export async function benchSleep(instance: BenchInstance, report: Report, repeats: number): Promise<void> {
  const input = { times: TIMES * repeats, ms: SLEEP_MS }
  const runs: RunId[] = []
  for (let i = 0; i < SLEEPERS; i++) {
    const { run } = await instance.client.runs.trigger({ workflow: 'sleeps', input })
    runs.push(run.id)
    // Apart from one another: what is measured is a sleep, not a crowd that wakes.
    await wait(SLEEP_MS / SLEEPERS)
  }
  const over: number[] = []
  for (const run of runs) {
    await until(async () => (await instance.client.runs.get({ run })).run.finishedAt !== null, 120_000)
    const { output } = await instance.client.runs.output({ run })
    over.push(...(output as number[]))
  }
  const p50 = median(over)
  report({ name: 'sleep, too long by, p50', value: p50, unit: 'ms', goal: atMost(p50, 10, 'ms') })
  report({ name: 'sleep, too long by, p99', value: percentile(over, 0.99), unit: 'ms' })
}

const PARKED = 20
/** So that what is counted is the parking, and not the start before it. */
const ASKS_AFTER_MS = 400

/** What a run costs that waits in its process, and what it takes to come there. */
export async function benchParked(instance: BenchInstance, agentPid: number, report: Report): Promise<void> {
  const runs: RunId[] = []
  const commits: number[] = []
  for (let i = 0; i < PARKED; i++) {
    const input = { questions: 1, afterMs: ASKS_AFTER_MS }
    const { run } = await instance.client.runs.trigger({ workflow: 'asks', input })
    await until(async () => (await linesOf(instance, run.id)) === 1, 20_000)
    const before = await entryCommits(instance)
    await until(async () => (await instance.client.runs.get({ run: run.id })).run.status === 'awaiting_input', 20_000)
    commits.push((await entryCommits(instance)) - before)
    runs.push(run.id)
  }
  const resident = familyOf(agentPid).slice(1).map(residentMiB)
  report({ name: 'memory, one parked process', value: median(resident), unit: 'MiB' })
  report({
    name: 'commits for one parking',
    value: median(commits),
    unit: '',
    goal: atMost(median(commits), 1),
  })
  for (const run of runs) await instance.client.runs.cancel({ run })
  await until(async () => (await instance.db`select from placements`).length === 0, 60_000)
}

async function entryCommits({ url }: BenchInstance): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  return Number(/^windlass_commit_seconds_count\{commit="entries"\} (\d+)$/m.exec(text)?.[1] ?? 0)
}
