import { droppedLines } from '@windlass/shared/log-out.ts'
import { Counter, Gauge, Histogram, Registry } from 'prom-client'
import type { Facts } from '../facts.ts'
import type { Bundles } from '../run/bundle/bundles.ts'
import type { Processes } from '../run/hosts/processes.ts'
import type { AgentRuns } from '../run/agent-runs.ts'
import type { Slots } from '../run/slots.ts'
import type { Spool } from '../run/spool/spool.ts'
import type { Activity } from '../status/activity.ts'

const START_BUCKETS = [0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30]

interface MetricsNeeds {
  activity: Activity
  bundles: Pick<Bundles, 'stats'>
  facts: Pick<Facts, 'current'>
  agentRuns: AgentRuns
  processes: Pick<Processes, 'stats'>
  slots: Pick<Slots, 'total' | 'free'>
  spool: Pick<Spool, 'stats'>
}

/** What Prometheus reads. Everything is asked for at the moment of reading, so that it costs nothing otherwise. */
export function createMetrics(deps: MetricsNeeds): Registry {
  const { activity, bundles, facts, agentRuns, processes, slots, spool } = deps
  const registers = [new Registry()]
  const [registry] = registers as [Registry]

  function gauge(name: string, help: string, value: () => number): void {
    // Registered by being made.
    void new Gauge({
      name: `windlass_agent_${name}`,
      help,
      registers,
      collect() {
        this.set(value())
      },
    })
  }
  function labelled(
    name: string,
    help: string,
    label: string,
    values: () => Iterable<readonly [string, number]>,
  ): void {
    void new Gauge({
      name: `windlass_agent_${name}`,
      help,
      labelNames: [label],
      registers,
      collect() {
        this.reset()
        for (const [of, value] of values()) this.set({ [label]: of }, value)
      },
    })
  }
  function counter(name: string, help: string, label: string, values: () => Iterable<readonly [string, number]>): void {
    void new Counter({
      name: `windlass_agent_${name}`,
      help,
      labelNames: label ? [label] : [],
      registers,
      collect() {
        this.reset()
        for (const [of, value] of values()) this.inc(label ? { [label]: of } : {}, value)
      },
    })
  }

  gauge('connected', 'Whether the coordinator has welcomed it.', () =>
    Number(activity.connection.state === 'connected'),
  )
  gauge('slots', 'Slots in all.', () => slots.total())
  gauge('slots_free', 'Slots that new work could have.', () => slots.free())
  labelled('runs', 'Runs that it has.', 'state', () => {
    const parked = agentRuns.all().filter((agentRun) => agentRun.isParked).length
    return [
      ['executing', agentRuns.size - parked],
      ['parked', parked],
    ]
  })
  labelled('unready', 'What keeps it from taking work.', 'check', () =>
    facts.current().unready.map(({ check }) => [check, 1] as const),
  )
  gauge('spool_unacknowledged_bytes', 'What the coordinator has not acknowledged.', () => spool.stats().unacknowledged)
  gauge('bundle_cache_bytes', 'Unpacked bundles.', () => bundles.stats().bytes)
  gauge('survivors', 'Processes that could not be killed.', () => processes.stats().survivors)
  counter('polls_total', 'Questions for work.', '', () => [['', activity.counts.polls]])
  counter('claims_total', 'Runs taken.', '', () => [['', activity.counts.claims]])
  counter('heartbeats_total', 'Heartbeats that were answered.', '', () => [['', activity.counts.heartbeats]])
  counter('connects_total', 'Connections on which it was welcomed.', '', () => [['', activity.counts.connects]])
  counter('endings_total', 'Processes of runs, by how they ended.', 'how', () => activity.endings)
  counter('log_lines_dropped_total', 'Lines that could not be written to its log.', '', () => [['', droppedLines()]])
  const starts = new Histogram({
    name: 'windlass_agent_start_seconds',
    help: 'From an offer until its program is handed to a process.',
    buckets: START_BUCKETS,
    registers,
  })
  activity.onStart((ms) => starts.observe(ms / 1000))
  return registry
}
