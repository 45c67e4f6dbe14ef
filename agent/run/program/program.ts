import type { Ending } from '@windlass/shared/model/ending.ts'
import type { Completion } from '@windlass/shared/wire/journal.ts'
import type { RunTrigger } from '@windlass/shared/model/run.ts'
import type { RunLimits } from '@windlass/shared/model/pool.ts'
import type { EffectiveIsolation } from '@windlass/shared/model/runner.ts'
import type { StartMessage } from '@windlass/shared/wire/program.ts'
import type { Time } from './compute-clock.ts'
import type { HostProcess } from '../hosts/host-process.ts'
import type { LineSplitters } from './output.ts'
import type { FrameMark } from '../spool/held.ts'
import type { RecordedJournal } from './recorded-journal.ts'
import type { Redactor } from '../redact/redactor.ts'

export interface ProgramStart {
  runId: string
  attempt: number
  epoch: number
  org: string
  workflow: { slug: string; version: number }
  environment: string | null
  /** How the run was started, where the coordinator says so. */
  trigger?: RunTrigger | undefined
  /** The input as JSON text. */
  inputText: string
  /** Folder that holds `main.mjs`. */
  bundleDir: string
  /** What it finds in its environment, secrets included. */
  variables: Record<string, string>
  /** Keeps its secrets out of what it tells; undefined when it has none. */
  redactor?: Redactor | undefined
  token: string
  /** What is recorded of the run. */
  journal: RecordedJournal
  /** Number of its last entry, handed over or not. */
  entries: number
  /** Number of the last one that was forgotten with its attempt. */
  forgotten: number
  replay: boolean
  /** Called right before it is given a process; nothing of it begins where this throws. */
  begins?: () => void
  /** Writes down what was told of it so far: an agent that is killed after that has told it. */
  save?: () => void
  /** Lines that the process before this one had begun, where that is known. */
  lines?: LineSplitters | undefined
  /** What is left of the time that it may compute; while it is parked, the time stands still. */
  timeoutMs: number
  graceMs: number
  process: 'fresh' | 'reuse'
  /** Processes serve one another's runs only where this is equal: org, version and environment. */
  reuseKey: string
  /** Largest output in bytes of JSON. */
  outputBytes?: number
  /** What it may put into an event, in bytes of JSON. */
  eventDataBytes?: number | undefined
}

export interface RunningProgram {
  /** Asks the program to stop, and makes it after the grace. Only a cancel after a handover is said once more. */
  cancel(order: StopOrder): void
  /** Ends it now, without asking and without a report. */
  kill(reason: 'fenced' | 'shutdown'): void
  /** Gives up a parked process. What it has left of a line is not told: its replay will bring it again. */
  evict(reason: string): void
  /** Hands the program a fresh per-run token. */
  renewToken(token: string): void
  /** What of these the program has not been given yet, and may be given: nothing while it leaves too much unread. */
  news(completions: readonly Completion[]): Completion[]
  /** Hands the program what it waits for; a parked one goes on, and counts as computing from here. */
  wake(completions: readonly Completion[]): void
  /** So many of its journal frames are committed. */
  confirm(count: number): void
  /** When it said that this is how it ended; undefined where it did not say so itself. */
  saidAt(ending: Ending): number | undefined
  /** What it has computed and not told in a `park`, in milliseconds. */
  computeMs(): number
  isParked(): boolean
  /** Resolves when there is a process for it, or none could be started. */
  started: Promise<void>
  hasStarted(): boolean
  /** Its process; undefined as long as there was none. */
  host(): HostProcess | undefined
  /** What somebody needs who is to take its process back one day; undefined when that cannot be done. */
  whereabouts(): Whereabouts | undefined
  /** From now on it is noted how far the program was heard. */
  follow(note: NoteMark): void
  /** Of a program whose run goes on in another process: the lines that it had begun. */
  leftLines(): LineSplitters | undefined
  /** Resolves when everything has been read and no process of the run is left. Never rejects. */
  done: Promise<Ending>
}

export interface Whereabouts {
  pid: number
  marker: string
  workspace: string
  uid: number | undefined
  /** Folder of its cgroup. */
  cgroup: string | undefined
  /** Name of the pipes that are its descriptors 1 and 2. */
  rawPipes: string
  /** Name of the folder of its runtime; undefined where an earlier agent has not said it. */
  runtime: string | undefined
  key: string
  effective: EffectiveIsolation
  limits: RunLimits
  /** What it has computed since it last began to; null while it does not. What was left then of its time. */
  countedMs: number | null
  leftMs: number
  /** How often it has begun to compute. */
  turns: number
}

/** Told after what it speaks of was given out. */
export type NoteMark = (mark: Omit<FrameMark, 'seq'>) => void

/** A process of an earlier agent, and what was heard of it there. */
export interface TakenBack {
  host: Workplace
  mark: Omit<FrameMark, 'seq'> & { frames: number }
  /** Of what it tells again so many events are known, and those about its journal are committed: it is told how many these are. */
  known: { events: number; onJournal: (count: number) => void }
  /** How many wakes it has read. */
  heard: number
  /** What it had computed since it last began to. */
  countedMs: number
  /** When its process was started, in milliseconds since the epoch. */
  startedAt: number
  /** Its runtime knows what a handover is. */
  handsOver?: boolean | undefined
}

export interface StopOrder {
  /** `handover`: the run goes on elsewhere. It may be cancelled after that. */
  why: 'cancelled' | 'timed-out' | 'handover'
  reason: string
  graceMs?: number
}

/** A process with a workspace for a run. */
export type Workplace = HostProcess & { workspace: string }

/** What a run needs of the place where it is executed. */
export interface RunContext {
  /** Calls back when there is more in its workspace than it may have. Answers how to look no more. */
  watchSize(host: Workplace, onFull: (limitMb: number) => void): () => void
  /** Resolves when a process may be started; rejects where this host cannot keep it apart as it is wanted. */
  ready(): Promise<void>
  /** How long a replay may take, where twice the time that the program has left is not longer. */
  replayMs: number
  /** How long a process may take to read on in its journal, and to begin after that. */
  journalMs: number
  /** By which it is counted how long a program computes. */
  time: Time | undefined
  /** Where the process finds another agent when this one is gone; undefined where none could come for it. */
  rejoin(host: HostProcess): StartMessage['rejoin']
  /** A process with a workspace for the run. */
  take(start: ProgramStart): Workplace
  /** Gives a process back for other runs; false when it has served long enough, or is not as it was. */
  keep(start: ProgramStart, host: HostProcess): boolean
  /** Runs that its process had served before have called while this one had it; nothing came of that. */
  strayed(runId: string, strays: string[]): void
  /** The program computes nothing any more, for a while. */
  parked(): void
  /** The process is gone, and `isClean` says whether all of its descendants are. */
  gone(host: HostProcess, isClean: boolean): void
}
