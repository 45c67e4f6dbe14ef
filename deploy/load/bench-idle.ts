import { type BenchInstance, until } from './bench-instance.ts'
import { cpuMs, familyOf, median, residentMiB, wait } from './measure.ts'
import { atMost, type Report } from './report.ts'

const WATCH_MS = 20_000
/** PostgreSQL gathers its counters from sessions that have been idle for a while. */
const SETTLE_MS = 5000

/** What an installation costs that has nothing to do: memory, CPU, statements. */
export async function benchIdle(instance: BenchInstance, agentPid: number, report: Report): Promise<void> {
  await wait(SETTLE_MS)
  const parts = {
    coordinator: [instance.coordinatorPid],
    agent: familyOf(agentPid),
    postgres: familyOf(instance.postgresPid),
  }
  const before = Object.values(parts).map((pids) => sum(pids, cpuMs))
  const statements = await transactions(instance)
  const since = performance.now()
  await wait(WATCH_MS)
  const seconds = (performance.now() - since) / 1000
  const perSecond = ((await transactions(instance)) - statements) / seconds
  const cpu = Object.values(parts).map((pids, i) => (sum(pids, cpuMs) - before[i]!) / seconds / 10)
  const total = cpu.reduce((a, b) => a + b, 0)
  const agentMiB = residentMiB(agentPid)
  const coordinatorMiB = residentMiB(instance.coordinatorPid)
  report({
    name: 'memory, coordinator, idle',
    value: coordinatorMiB,
    unit: 'MiB',
    goal: atMost(coordinatorMiB, 200, 'MiB'),
  })
  report({ name: 'memory, agent, idle', value: agentMiB, unit: 'MiB', goal: atMost(agentMiB, 100, 'MiB') })
  report({ name: 'memory, one spare process', value: sum(parts.agent.slice(1), residentMiB), unit: 'MiB' })
  report({
    name: 'CPU when idle, coordinator + agent + PostgreSQL',
    value: total,
    unit: '% of a core',
    goal: atMost(total, 1, '%'),
  })
  report({ name: 'database statements when idle', value: perSecond, unit: '/s', goal: atMost(perSecond, 5, '/s') })
}

function sum(pids: number[], of: (pid: number) => number): number {
  return pids.map(of).reduce((a, b) => a + b, 0)
}

async function transactions({ db }: BenchInstance): Promise<number> {
  const [row] = await db<
    [{ n: string }]
  >`select xact_commit + xact_rollback as n from pg_stat_database where datname = current_database()`
  return Number(row.n)
}

const LINES = 50_000

/** A real program that prints as fast as it can, to the committed log. */
export async function benchChatty(
  instance: BenchInstance,
  agentPid: number,
  report: Report,
  repeats: number,
): Promise<void> {
  const rates: number[] = []
  let peak = 0
  const watch = setInterval(() => (peak = Math.max(peak, residentMiB(agentPid))), 50)
  for (let i = 0; i < repeats; i++) {
    const since = performance.now()
    const { run } = await instance.client.runs.trigger({ workflow: 'chatty', input: { lines: LINES } })
    await until(async () => (await instance.client.runs.get({ run: run.id })).run.finishedAt !== null, 60_000)
    rates.push(LINES / ((performance.now() - since) / 1000))
  }
  clearInterval(watch)
  report({
    name: 'events, one printing program to committed log',
    value: median(rates),
    unit: 'events/s',
    repeats: rates,
  })
  report({ name: 'memory, agent, peak under that load', value: peak, unit: 'MiB' })
}
