import type { BenchInstance } from './bench-instance.ts'
import { type Cpu, meter, partsOf, reportCpu, sumOf } from './cpu.ts'
import { median, wait } from './measure.ts'
import { familyOf, livingMiB, peakMiB, residentMiBs } from './processes.ts'
import { atMost, type Report } from './row.ts'
import { hasFinished, settled } from './settled.ts'

const WATCH_MS = 10_000
/** Late compilation and collection after the start take some 20 s; after that it is the same for hours. */
const SETTLE_MS = 25_000

/** PostgreSQL counts statements only with this library; the server of this group is started with it. */
export const COUNTING = { shared_preload_libraries: 'pg_stat_statements' }

/** What an installation costs that has nothing to do: memory, CPU, statements. */
export async function benchIdle(
  instance: BenchInstance,
  agentPid: number,
  report: Report,
  repeats: number,
): Promise<void> {
  await instance.db`create extension if not exists pg_stat_statements`
  await wait(SETTLE_MS)
  const { bench: _, ...parts } = partsOf(instance, agentPid)
  const cpu: number[] = []
  const statements: number[] = []
  for (let i = 0; i < repeats; i++) {
    await instance.db`select pg_stat_statements_reset()`
    const used = meter(parts)
    const since = performance.now()
    await wait(WATCH_MS)
    const seconds = (performance.now() - since) / 1000
    // Ten milliseconds of CPU in a second are a hundredth of a core.
    cpu.push(sumOf(used(seconds * 10)))
    statements.push((await statementsSeen(instance)) / seconds)
  }
  const agentMiB = livingMiB(agentPid, 'agent')
  const coordinatorMiB = livingMiB(instance.coordinatorPid, 'coordinator')
  const spareMiB = Math.max(...residentMiBs(familyOf(agentPid).slice(1)))
  report({
    name: 'memory, coordinator, idle',
    value: coordinatorMiB,
    unit: 'MiB',
    goal: atMost(coordinatorMiB, 200, 'MiB'),
  })
  report({ name: 'memory, agent, idle', value: agentMiB, unit: 'MiB', goal: atMost(agentMiB, 100, 'MiB') })
  report({ name: 'memory, one spare process', value: spareMiB, unit: 'MiB' })
  report({
    name: 'CPU when idle, coordinator + agent + PostgreSQL',
    value: median(cpu),
    unit: '% of a core',
    repeats: cpu,
    goal: atMost(median(cpu), 1, '%'),
  })
  report({
    name: 'database statements when idle',
    value: median(statements),
    unit: '/s',
    repeats: statements,
    better: 'lower',
    goal: atMost(median(statements), 5, '/s'),
  })
}

/** Since the reset, without the reset itself. Transactions' own begin and commit count too. */
export async function statementsSeen({ db }: BenchInstance): Promise<number> {
  const [row] = await db<[{ n: number }]>`
    select coalesce(sum(calls), 0)::int as n
    from pg_stat_statements
    where query not like '%pg_stat_statements%'`
  return row.n
}

const LINES = 50_000

/** A real program that prints as fast as it can, to the committed log. */
export async function benchChatty(
  instance: BenchInstance,
  agentPid: number,
  report: Report,
  repeats: number,
): Promise<void> {
  const used: Cpu[] = []
  const { peak, result: rates } = await peakMiB(agentPid, async () => {
    const measured: number[] = []
    for (let i = 0; i < repeats; i++) {
      const spent = meter(partsOf(instance, agentPid))
      const since = performance.now()
      const { run } = await instance.client.runs.trigger({ workflow: 'chatty', input: { lines: LINES } })
      const until = await settled(instance, () => hasFinished(instance, run.id))
      measured.push(LINES / ((until - since) / 1000))
      used.push(spent(LINES / 1000))
    }
    return measured
  })
  report({
    name: 'events, one printing program to committed log',
    value: median(rates),
    unit: 'events/s',
    repeats: rates,
  })
  reportCpu(report, { name: 'events, one printing program', per: '1,000 lines', used })
  report({ name: 'memory, agent, peak under that load', value: peak, unit: 'MiB' })
}
