import type { JobId } from '@windlass/shared/ids.ts'
import type { BenchInstance } from './bench-instance.ts'
import { httpLoad } from './http-load.ts'
import { median, now, percentile } from './measure.ts'
import { type Offers, openOffers } from './offers.ts'
import { atMost, type Report } from './row.ts'
import { load } from './settled.ts'

const RUNS = 10_000
const CALLERS = 64
const SLOTS = 64
const WARM_UP = 2000
const QUIET_SAMPLES = 1000
const WITHIN_MS = 120_000
/** A pool without agents, and the workflow that needs it: its runs wait. */
const WAITING = 'bulk-waiting'

/** A job that cancels very many queued runs, and claims of other runs meanwhile. */
export async function benchBulk(instance: BenchInstance, report: Report, repeats: number): Promise<void> {
  await deployWaiting(instance)
  const offers = await openOffers(instance, SLOTS)
  await load(instance, { slug: 'noop-fresh', runs: WARM_UP, callers: SLOTS })
  const seconds: number[] = []
  const quiet: number[] = []
  const beside: number[] = []
  for (let i = 0; i < repeats; i++) {
    quiet.push(percentile(await delays(offers, QUIET_SAMPLES), 0.99))
    await queueRuns(instance)
    const { job } = await instance.client.runs.bulkCancel({ filter: { workflow: WAITING } })
    const since = now()
    beside.push(percentile(await delaysDuring(instance, offers, job.id), 0.99))
    seconds.push((now() - since) / 1000)
  }
  offers.close()
  const ratios = beside.map((ms, i) => ms / quiet[i]!)
  const ratio = { to: 'without', value: median(ratios), repeats: ratios }
  report({
    name: `bulk cancel of ${RUNS.toLocaleString('en')} queued runs`,
    value: median(seconds),
    unit: 's',
    repeats: seconds,
  })
  report({ name: 'trigger → offer p99, without a bulk cancel', value: median(quiet), unit: 'ms', repeats: quiet })
  report({
    name: 'trigger → offer p99, beside a bulk cancel',
    value: median(beside),
    unit: 'ms',
    repeats: beside,
    ratio,
    goal: atMost(ratio.value, 2, '×'),
  })
}

async function deployWaiting({ client }: BenchInstance): Promise<void> {
  await client.pools.create({ name: WAITING })
  await client.workflows.create({
    files: [
      { path: 'workflow.jsonc', content: JSON.stringify({ slug: WAITING, pool: WAITING }) },
      { path: 'index.ts', content: 'export async function run(): Promise<null> {\n  return null\n}\n' },
    ],
  })
}

async function queueRuns({ url, apiKey }: BenchInstance): Promise<void> {
  const path = `/v1/orgs/default/workflows/${WAITING}/runs`
  const { failed } = await httpLoad({
    url,
    path,
    apiKey,
    body: '{}',
    connections: CALLERS,
    requests: RUNS,
    expect: 201,
  })
  if (failed > 0) throw new Error(`${failed} triggers of ${WAITING} were refused`)
}

async function delays(offers: Offers, samples: number): Promise<number[]> {
  const found: number[] = []
  while (found.length < samples) found.push(await offers.next())
  return found
}

/** Claims until the job has ended. Throws when it has not cancelled all. */
async function delaysDuring({ client }: BenchInstance, offers: Offers, id: JobId): Promise<number[]> {
  const found: number[] = []
  const until = now() + WITHIN_MS
  for (;;) {
    for (let i = 0; i < 20; i++) found.push(await offers.next())
    const { job } = await client.jobs.get({ job: id })
    if (job.finishedAt !== null) {
      if (job.done !== RUNS) throw new Error(`${job.id} has cancelled ${job.done} of ${RUNS} runs: ${job.status}`)
      return found
    }
    if (now() > until) throw new Error(`${job.id} had not ended after ${WITHIN_MS} ms`)
  }
}
