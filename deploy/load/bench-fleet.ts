import { type ChildProcess, fork } from 'node:child_process'
import { join } from 'node:path'
import { within } from '@windlass/shared/time.ts'
import { statementsSeen } from './bench-idle.ts'
import { type BenchInstance, until } from './bench-instance.ts'
import type { Order, FleetMessage } from './fleet-agents.ts'
import { meter, partsOf } from './cpu.ts'
import { median, now, percentile, wait } from './measure.ts'
import { livingMiB } from './processes.ts'
import { atMost, type Report } from './row.ts'

/** `WINDLASS_BENCH_AGENTS`: connected, welcomed and polling, with nothing to do. */
const AGENTS = Number(process.env['WINDLASS_BENCH_AGENTS'] ?? 1000)
const STARTED_MS = 120_000
/** Late compilation and collection, and the first polls of all at once. */
const SETTLE_MS = 30_000
/** Two polls of each agent. */
const WATCH_MS = 50_000
const CLAIMS = 200
const CLAIMED_MS = 20_000
const SLOW_MS = 100

/** What a fleet costs that has nothing to do, and how soon one of it has a run. `pools`: over how many it is spread. */
export async function benchFleet(
  instance: BenchInstance,
  { pools, report, repeats }: { pools: number; report: Report; repeats: number },
): Promise<void> {
  const workflows = await deployPinned(instance, pools)
  const fleet = await startFleet(instance, workflows)
  const named = (what: string) => `${what}, ${AGENTS} agents in ${pools === 1 ? 'one pool' : `${pools} pools`}`
  try {
    report({ name: named('registered and connected'), value: fleet.startedMs / 1000, unit: 's' })
    await wait(SETTLE_MS)
    if (pools === 1) await benchIdleFleet(instance, fleet, { named, report })
    const repeated = { p50: [] as number[], p99: [] as number[] }
    for (let n = 0; n < repeats; n++) {
      const times = await claimTimes(instance, fleet, workflows)
      repeated.p50.push(percentile(times, 0.5))
      repeated.p99.push(percentile(times, 0.99))
    }
    const [p50, p99] = [median(repeated.p50), median(repeated.p99)]
    report({ name: named('trigger → offer p50'), value: p50, unit: 'ms', repeats: repeated.p50 })
    const goal = atMost(p99, SLOW_MS, 'ms')
    report({ name: named('trigger → offer p99'), value: p99, unit: 'ms', repeats: repeated.p99, goal })
  } finally {
    await fleet.stop()
  }
}

interface Fleet {
  startedMs: number
  /** When each run was offered to an agent. */
  offers: Map<string, number>
  /** Sent and received so far. */
  frames(): Promise<number>
  stop(): Promise<void>
}

async function startFleet(instance: BenchInstance, workflows: readonly Pinned[]): Promise<Fleet> {
  const offers = new Map<string, number>()
  const child = fork(join(import.meta.dirname, 'fleet-agents.ts'), {
    execArgv: ['--disable-warning=ExperimentalWarning'],
  })
  let isReady = false
  let counted: ((frames: number) => void) | undefined
  child.on('message', (message: FleetMessage) => {
    if (message.what === 'ready') isReady = true
    else if (message.what === 'offer') offers.set(message.run, message.at)
    else counted?.(message.sent + message.received)
  })
  const since = performance.now()
  const tokens = await Promise.all(workflows.map(({ pool }) => reusableToken(instance, pool)))
  child.send({ url: instance.url, tokens, agents: AGENTS } satisfies Order)
  try {
    await until(() => isReady || hasEnded(child), STARTED_MS)
    if (!isReady) throw new Error('the process of the simulated agents ended')
  } catch (error) {
    child.kill('SIGKILL')
    throw error
  }
  return {
    startedMs: performance.now() - since,
    offers,
    frames() {
      const answered = new Promise<number>((resolve) => (counted = resolve))
      child.send('frames')
      return within(CLAIMED_MS, answered, 'the process of the simulated agents did not answer')
    },
    async stop() {
      child.kill('SIGKILL')
      await until(() => hasEnded(child), CLAIMED_MS)
    },
  }
}

const hasEnded = ({ exitCode, signalCode }: ChildProcess) => exitCode !== null || signalCode !== null

interface Idle {
  named: (what: string) => string
  report: Report
}

async function benchIdleFleet(instance: BenchInstance, fleet: Fleet, { named, report }: Idle): Promise<void> {
  const { bench: _, ...parts } = partsOf(instance)
  const framesBefore = await fleet.frames()
  await instance.db`select pg_stat_statements_reset()`
  const used = meter(parts)
  const since = performance.now()
  await wait(WATCH_MS)
  const seconds = (performance.now() - since) / 1000
  // Ten milliseconds of CPU in a second are a hundredth of a core.
  const cpu = used(seconds * 10)
  const statements = (await statementsSeen(instance)) / seconds
  const frames = ((await fleet.frames()) - framesBefore) / seconds
  const resident = livingMiB(instance.coordinatorPid, 'coordinator')
  report({ name: named('memory, coordinator, idle'), value: resident, unit: 'MiB' })
  report({ name: named('CPU, coordinator, idle'), value: cpu['coordinator']!, unit: '% of a core' })
  report({ name: named('CPU, PostgreSQL, idle'), value: cpu['PostgreSQL']!, unit: '% of a core' })
  report({ name: named('database statements, idle'), value: statements, unit: '/s', better: 'lower' })
  report({ name: named('frames over the sockets, idle'), value: frames, unit: '/s', better: 'lower' })
}

/** One run at a time, while every agent polls. */
async function claimTimes(instance: BenchInstance, fleet: Fleet, workflows: readonly Pinned[]): Promise<number[]> {
  const times: number[] = []
  for (let n = 0; n < CLAIMS; n++) {
    const { slug } = workflows[n % workflows.length]!
    const since = now()
    const { run } = await instance.client.runs.trigger({ workflow: slug })
    await until(() => fleet.offers.has(run.id), CLAIMED_MS)
    times.push(fleet.offers.get(run.id)! - since)
  }
  return times
}

interface Pinned {
  slug: string
  pool: string
}

/** A workflow for each pool. */
async function deployPinned({ client }: BenchInstance, pools: number): Promise<Pinned[]> {
  const names = Array.from({ length: pools }, (_, n) => `fleet-${n}`)
  for (const name of names) {
    await client.pools.create({ name })
    const files = [
      { path: 'workflow.jsonc', content: JSON.stringify({ slug: name, pool: name }) },
      { path: 'index.ts', content: 'export const run = () => Promise.resolve(null)\n' },
    ]
    await client.workflows.create({ files })
  }
  return names.map((name) => ({ slug: name, pool: name }))
}

async function reusableToken({ client }: BenchInstance, name: string): Promise<string> {
  const { runnerPools } = await client.pools.list({})
  const pool = runnerPools.find((each) => each.name === name)!.id
  const { registrationToken } = await client.pools.createToken({ pool, reusable: true, uses: 1000 })
  return registrationToken.token
}
