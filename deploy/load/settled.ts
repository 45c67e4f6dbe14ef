import type { RunId } from '@windlass/shared/ids.ts'
import type { BenchInstance } from './bench-instance.ts'
import { type Cpu, type CpuParts, meter } from './cpu.ts'
import { httpLoad } from './http-load.ts'
import { wait } from './measure.ts'

/** How often the bench looks: often enough against loads of seconds, and less than a hundredth of the machine. */
const LOOK_MS = 20
const SETTLED_WITHIN_MS = 120_000

/**
 * Waits until no run is queued or placed, and asks `isOver` only then: two empty indexes cost next to nothing to look
 * at, while counting runs all the time would be a good part of what is measured. Resolves with the moment
 * (`performance.now()`) at which it was so.
 */
export async function settled(
  { db }: BenchInstance,
  isOver: () => Promise<boolean>,
  withinMs = SETTLED_WITHIN_MS,
): Promise<number> {
  const since = performance.now()
  for (;;) {
    await wait(LOOK_MS)
    const [row] = await db<[{ busy: boolean }]>`
      select exists (select from run_queue) or exists (select from placements) as busy`
    const at = performance.now()
    if (!row.busy && (await isOver())) return at
    if (at - since > withinMs) throw new Error(`runs had not ended after ${withinMs} ms`)
  }
}

/** Counts the runs that have ended. It reads all runs, so it must not be called during a measurement. */
async function finished({ db }: BenchInstance): Promise<number> {
  const [row] = await db<[{ n: number }]>`select count(*)::int as n from runs where finished_at is not null`
  return row.n
}

export async function hasFinished({ client }: BenchInstance, run: RunId): Promise<boolean> {
  return (await client.runs.get({ run })).run.finishedAt !== null
}

export interface Loading {
  slug: string
  runs: number
  callers: number
  parts?: CpuParts
}

export interface Loaded {
  /** Time from the first trigger until all runs had ended. */
  tookMs: number
  /** CPU of one run, by part. */
  cpu: Cpu
}

/** Triggers runs of a workflow and waits until all have ended. */
export async function load(instance: BenchInstance, { slug, runs, callers, parts }: Loading): Promise<Loaded> {
  const { url, apiKey } = instance
  const before = await finished(instance)
  const path = `/v1/orgs/default/workflows/${slug}/runs`
  const used = meter(parts ?? {})
  let cpu: Cpu = {}
  const since = performance.now()
  const { failed } = await httpLoad({
    url,
    path,
    apiKey,
    body: '{}',
    connections: callers,
    requests: runs,
    expect: 201,
  })
  if (failed > 0) throw new Error(`${failed} triggers of ${slug} were refused`)
  const until = await settled(instance, async () => {
    cpu = used(runs)
    return (await finished(instance)) - before >= runs
  })
  return { tookMs: until - since, cpu }
}

/** Rate of such a load. */
export const perSecond = (runs: number, tookMs: number) => runs / (tookMs / 1000)
