import { benchAccess } from './bench-access.ts'
import { benchApi } from './bench-api.ts'
import { benchAsleep } from './bench-asleep.ts'
import { benchCli } from './bench-cli.ts'
import { benchCoordinator, benchSkeleton } from './bench-coordinator.ts'
import { benchEvents, benchStream } from './bench-events.ts'
import { benchFleet } from './bench-fleet.ts'
import { benchBulk } from './bench-bulk.ts'
import { benchChatty, benchIdle, COUNTING } from './bench-idle.ts'
import { benchHistory } from './bench-history.ts'
import { benchFloods } from './bench-floods.ts'
import { benchHostile } from './bench-hostile.ts'
import { type AgentOptions, type BenchAgent, type BenchInstance, startBenchInstance } from './bench-instance.ts'
import { benchJudging } from './bench-judging.ts'
import { benchKeyTiming } from './bench-key-timing.ts'
import { benchSchedules } from './bench-schedules.ts'
import { benchFirstLine, benchProcesses } from './bench-start-up.ts'
import { benchFanOut, benchSteps } from './bench-steps.ts'
import { benchEvictedWake, benchParked, benchSleep, benchWake } from './bench-wake.ts'
import { benchWebhooks } from './bench-webhooks.ts'
import { deployPrograms } from './programs.ts'
import type { Report } from './row.ts'

interface Round {
  report: Report
  repeats: number
}

/** Benches that run under one name. */
export interface Group {
  name: string
  bench(round: Round): Promise<void>
}

/** Groups that share an installation, in the order in which they are measured. */
export interface Sitting {
  names: readonly string[]
  /** True when it runs only if `--only` names it. */
  isExtra?: boolean
  open(): Promise<{ groups: readonly Group[]; stop(): Promise<void> }>
}

interface Prepared {
  instance: BenchInstance
  agent: BenchAgent
}

type Acts<P> = Record<string, (prepared: P, report: Report, repeats: number) => Promise<void>>

interface Needs {
  settings?: Record<string, string>
  programs?: boolean
}

/** Opens an instance with a real agent. */
const withAgent = (agent: AgentOptions, acts: Acts<Prepared>, needs: Needs = {}) =>
  sitting(acts, needs, async (instance) => ({ instance, agent: await instance.addAgent(agent) }))

/** Opens an instance without agents: the benches simulate them. */
const alone = (acts: Acts<BenchInstance>, needs: Needs = {}) =>
  sitting(acts, needs, (instance) => Promise.resolve(instance))

function sitting<P>(
  acts: Acts<P>,
  { settings = {}, programs = true }: Needs,
  prepare: (instance: BenchInstance) => Promise<P>,
): Sitting {
  return {
    names: Object.keys(acts),
    async open() {
      const instance = await startBenchInstance(settings)
      try {
        if (programs) await deployPrograms(instance.client)
        const prepared = await prepare(instance)
        const groups = Object.entries(acts).map(([name, act]): Group => ({
          name,
          bench: ({ report, repeats }) => act(prepared, report, repeats),
        }))
        return { groups, stop: () => instance.stop() }
      } catch (error) {
        await instance.stop()
        throw error
      }
    },
  }
}

/** A group that needs no instance of the product. */
function apart(name: string, bench: (report: Report, repeats: number) => Promise<void>, isExtra = false): Sitting {
  const group: Group = { name, bench: ({ report, repeats }) => bench(report, repeats) }
  return { names: [name], isExtra, open: () => Promise.resolve({ groups: [group], stop: () => Promise.resolve() }) }
}

/** Agents spread over so many pools. */
const fleetOf = (pools: number) =>
  alone(
    {
      fleet: async (instance, report, repeats) => {
        await instance.db`create extension if not exists pg_stat_statements`
        await benchFleet(instance, { pools, report, repeats })
      },
    },
    { settings: COUNTING, programs: false },
  )

export const SITTINGS: readonly Sitting[] = [
  withAgent(
    { slots: 8 },
    {
      'first-line': ({ instance, agent }, report, repeats) => benchFirstLine(instance, agent, report, repeats),
      processes: ({ instance, agent }, report, repeats) => benchProcesses(instance, agent, report, repeats),
      chatty: ({ instance, agent }, report, repeats) => benchChatty(instance, agent.pid, report, repeats),
    },
  ),
  withAgent(
    { slots: 4 },
    { idle: ({ instance, agent }, report, repeats) => benchIdle(instance, agent.pid, report, repeats) },
    { settings: COUNTING, programs: false },
  ),
  alone({ coordinator: benchCoordinator, events: benchEvents, stream: benchStream }),
  // Its rows are among those of `coordinator`.
  apart('skeleton', benchSkeleton, true),
  withAgent(
    { slots: 8 },
    {
      async wake({ instance, agent }, report, repeats) {
        await benchWake(instance, report, repeats)
        await benchSleep(instance, report, repeats)
        await benchParked(instance, agent.pid, report)
      },
      steps: ({ instance, agent }, report, repeats) => benchSteps(instance, agent, report, repeats),
      'fan-out': ({ instance }, report, repeats) => benchFanOut(instance, report, repeats),
    },
  ),
  withAgent({ slots: 8 }, { webhooks: ({ instance }, report, repeats) => benchWebhooks(instance, report, repeats) }),
  alone({ wake: benchEvictedWake }),
  alone({ asleep: (instance, report) => benchAsleep(instance, report) }, { settings: COUNTING }),
  alone({ bulk: benchBulk }),
  alone({ cli: benchCli }, { programs: false }),
  alone({ schedules: benchSchedules }, { settings: COUNTING }),
  fleetOf(1),
  fleetOf(10),
  alone({ api: benchApi }, { settings: COUNTING }),
  // To write ten million events takes minutes.
  { ...alone({ history: benchHistory }, { settings: COUNTING }), isExtra: true },
  apart('access', benchAccess),
  apart('judging', benchJudging),
  alone({ hostile: benchHostile }, { programs: false }),
  alone({ hostile: benchFloods }, { programs: false }),
  alone({ 'key-timing': benchKeyTiming }, { programs: false }),
]

/** Names of all groups, once each. */
export const GROUPS = [...new Set(SITTINGS.flatMap(({ names }) => names))]
/** Names of the groups that run by default. */
export const USUAL = [...new Set(SITTINGS.filter(({ isExtra }) => !isExtra).flatMap(({ names }) => names))]
