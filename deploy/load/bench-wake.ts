import type { RunId } from '@windlass/shared/ids.ts'
import { type BenchInstance, until } from './bench-instance.ts'
import { openPoster } from './http-load.ts'
import { reportDelays } from './delays.ts'
import { median, now, wait } from './measure.ts'
import { familyOf, residentMiBs } from './processes.ts'
import { atMost, type Report } from './row.ts'
import { hasFinished, settled } from './settled.ts'

const WARM_UP = 10
const SAMPLES = 40
const SETTLED_MS = 20
const ASKED_MS = 20_000

/** An answer → the next line of a program that waits for it in its process. */
export async function benchWake(instance: BenchInstance, report: Report, repeats: number): Promise<void> {
  const questions = WARM_UP + SAMPLES * repeats
  const { run } = await instance.client.runs.trigger({ workflow: 'asks', input: { questions } })
  const answeredAt: number[] = []
  // Whether it goes on is seen by its next question: it is not asked while what is measured is under way.
  for (let i = 0; i < questions; i++) answeredAt.push(await answer(instance, run.id, 'parked'))
  await settled(instance, () => hasFinished(instance, run.id))
  const lines = await momentsOf(instance, run.id)
  const delays = answeredAt.map((at, i) => lines[i + 1]! - at).slice(WARM_UP)
  reportDelays(report, { name: 'answer to next line, parked', samples: delays, repeats, most: { p50: 5 } })
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
    await settled(instance, () => hasFinished(instance, run.id))
    const [first, second] = await momentsOf(instance, run.id)
    if (i < 0) continue
    cold.push(first! - triggeredAt)
    woken.push(second! - answeredAt)
  }
  poster.close()
  await agent.stop()
  reportDelays(report, { name: 'trigger to first line of that program', samples: cold, repeats })
  reportDelays(report, {
    name: 'answer to next line, evicted',
    samples: woken,
    repeats,
    against: { to: 'cold start', samples: cold },
    most: { p50: 1.5 },
  })
}

/** Waits until the run asks, its process being where it should be, answers, and tells when. */
async function answer(instance: BenchInstance, run: RunId, process: 'parked' | 'evicted'): Promise<number> {
  let input: string | undefined
  // The way from the last answer to the next question is over by then, and nobody has looked on.
  await wait(SETTLED_MS)
  await until(async () => {
    const [row] = await instance.db<{ place: string | null; id: string }[]>`
      select r.place, i.id
      from runs r
      join inputs i on i.run_id = r.id and i.status = 'open'
      where r.id = ${run} and r.status = 'awaiting_input'`
    if (!row || row.place !== (process === 'parked' ? 'parked' : null)) return false
    input = row.id
    return true
  }, ASKED_MS)
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
    await settled(instance, () => hasFinished(instance, run))
    const { output } = await instance.client.runs.output({ run })
    over.push(...(output as number[]))
  }
  reportDelays(report, { name: 'sleep, too long by', samples: over, repeats, most: { p50: 10 } })
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
  const resident = residentMiBs(familyOf(agentPid).slice(1))
  report({ name: 'memory, one parked process', value: median(resident), unit: 'MiB' })
  report({ name: 'commits for one parking', value: median(commits), unit: '', goal: atMost(median(commits), 1) })
  for (const run of runs) await instance.client.runs.cancel({ run })
  await settled(instance, () => Promise.resolve(true))
}

async function entryCommits({ url }: BenchInstance): Promise<number> {
  const text = await (await fetch(`${url}/metrics`)).text()
  return Number(/^windlass_commit_seconds_count\{commit="entries"\} (\d+)$/m.exec(text)?.[1] ?? 0)
}
