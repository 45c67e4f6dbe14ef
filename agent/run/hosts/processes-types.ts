import type { PoolSettings } from '@windlass/shared/model/pool.ts'
import type { Capability } from '@windlass/shared/wire/agent.ts'
import type { HostIsolation } from '../../isolation/plan.ts'
import type { InForce, Refusal } from '../../isolation/probe.ts'
import type { Found, ProgramRecord, Records } from '../../takeover/records.ts'
import type { Time } from '../program/compute-clock.ts'
import type { FormerWorkspaces } from './former-workspaces.ts'
import type { HostLines, HostProcess } from './host-process.ts'
import type { OnEvents } from '../program/output.ts'
import type { ProgramStart, RunningProgram, TakenBack } from '../program/program.ts'

export interface ProcessesOptions {
  /** The agent's own folder: the runtime and the runs' workspaces are kept below. */
  home: string
  /** All that programs inherit; see `programEnvironment`. */
  environment: Record<string, string>
  /** Booted processes kept ready. */
  spares?: number
  /** Processes that may wait for another run of their program. */
  idleProcesses?: number
  idleMs?: number
  /** Runs after which a process is retired. */
  runsPerProcess?: number
  /** How long a replay may take, where the program's own timeout is not longer. */
  replayMs?: number
  /** How long a process may take to read on in the journal of its run, and to begin after that. */
  journalMs?: number
  /** By which it is counted how long programs compute; that of the machine by default. */
  time?: Time
  cores?: number
  /** Node that executes programs, this one by default. */
  execPath?: string
  /** How runs are kept apart, as far as the host says. */
  isolation?: HostIsolation
  /** What the pool says, at any moment. */
  pool?: () => Pick<PoolSettings, 'isolation' | 'network' | 'limits'> | undefined
  /** Things that somebody should know about. */
  log?: (name: string, facts?: Record<string, unknown>) => void
  /** What is kept of programs, for the next agent; without it none is taken back. */
  records?: Records
  /** Of the agent before this one, and to be taken back. */
  found?: readonly ProgramRecord[]
  /** Removes the workspaces of the others, and may have begun to; its own by default. It is closed in any case. */
  workspaces?: FormerWorkspaces | undefined
  /** Until when these may live, and what ends them then as long as nobody else does. */
  guard?: Pick<Found, 'lease' | 'endReaper'>
}

export interface ProcessesStats {
  running: number
  spares: { booting: number; ready: number }
  idle: number
  /** Processes that survived SIGKILL: the host has a problem that an agent cannot solve. */
  survivors: number
  reaperPid: number | undefined
}

export interface Processes {
  run(start: ProgramStart, onEvents: OnEvents, taken?: TakenBack): RunningProgram
  /** Opens or closes pipes that a process of the agent before this one may have as well. */
  during<T>(record: ProgramRecord, files: readonly string[], act: () => T): T
  /** A process of the agent before this one, over the lines on which it waits. */
  adopt(record: ProgramRecord, lines: Pick<HostLines, 'frames' | 'messages'>): HostProcess & { workspace: string }
  /** Ends one that was adopted and got no run; answers whether nothing of it is left. */
  end(host: HostProcess): Promise<boolean>
  /** The same for one that was found, and to which there are no pipes: nobody hears it, and nobody would fence it. */
  endUnheard(record: ProgramRecord): Promise<boolean>
  /** It outlives this agent by what is left of its lease. */
  keep(pid: number, isSpared: boolean): void
  leaseUntil(untilMs: number): void
  /** When all of them are ended by somebody else, as this agent stands still; see `Reaper`. */
  fenceAt(atMs: number | undefined): void
  stats(): ProcessesStats
  /** What is in force for the next process, or why none is started. */
  isolation(): Promise<InForce | Refusal>
  /** What this host could give, wanted or not. */
  capabilities(): Promise<Capability[]>
  /** Kills what runs, and resolves when nothing is left. */
  close(): Promise<void>
}
