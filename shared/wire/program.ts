import type { RunTrigger } from '../model/run.ts'
import type { Completion, JournalRecord, SuspendKind } from './journal.ts'

/**
 * What an agent and the program it executes say to each other. Types only: the program's side is loaded at each start of a
 * process, and must not pull anything in.
 *
 * Agent → program, descriptor 4: [length u32 LE][JSON of a `ProgramMessage`].
 * Program → agent, descriptor 3: [code u8][length u32 LE][time f64 LE, ms since the epoch][payload UTF-8].
 */
export type ProgramMessage =
  | JournalMessage
  | StartMessage
  | CancelMessage
  | TokenMessage
  | WakeMessage
  | KeptMessage
  | ResendMessage

/** What is recorded of the run so far, and may be handed over: in pieces, ahead of its `start`. */
export interface JournalMessage {
  t: 'journal'
  records: JournalRecord[]
}

export interface StartMessage {
  t: 'start'
  runId: string
  attempt: number
  epoch: number
  org: string
  workflow: { slug: string; version: number }
  environment: string | null
  /** How the run was started; left out by an older coordinator. */
  trigger?: RunTrigger | undefined
  /** The input as JSON text. */
  inputText: string
  /** Path of the module that exports `run`. */
  bundleFile: string
  /** The run's own folder: working directory and home. */
  workspace: string
  variables: Record<string, string>
  token: string
  /** Whether the process is to stay for another run of the same program. */
  stays: boolean
  /** Largest output in bytes of JSON. */
  outputBytes: number
  /** What it may put into an event, in bytes of JSON. */
  eventDataBytes: number
  /** Number of its last entry, handed over or not: new ones count on from there. */
  entries: number
  /** Number of the last one that was forgotten with its attempt: room is counted from there. Left out: none was. */
  forgotten?: number
  /** Where the program finds an agent that comes for it when this one is gone, and how long it waits; left out: it ends then. */
  rejoin?: { folder: string; waitMs: number }
  /** The entries of this attempt are replayed, up to the point where nothing but waits is left. */
  replay: boolean
}

export interface CancelMessage {
  t: 'cancel'
  /**
   * `handover`: the agent is being stopped, and the run goes on elsewhere. Only to a program whose runtime knows it: an
   * older one would take it for a cancel.
   */
  why: 'cancelled' | 'timed-out' | 'handover'
  reason: string
  graceMs: number
}

/** A fresh per-run token: the first one lives minutes, a run may live days. */
export interface TokenMessage {
  t: 'token'
  token: string
}

/** What the program waits for is there. The same completion may come twice. */
export interface WakeMessage {
  t: 'wake'
  completions: Completion[]
}

/** The first `count` of the `journal` frames that this process has sent for the run are committed. */
export interface KeptMessage {
  t: 'kept'
  count: number
}

/** The answer to `rejoin`: every frame from this one on is to be sent again. */
export interface ResendMessage {
  t: 'resend'
  from: number
}

/** What a program says to an agent that has come for it. Frames are counted from 0, which is its `begun`. */
export interface RejoinReport {
  /** The oldest frame that it can send again, and how many it has sent. */
  first: number
  next: number
  /** How many `wake` messages it has read. */
  heard: number
  /** What it was given: the agent that gave it is gone, and the next one hides the secrets among it. */
  variables: Record<string, string>
  /** It knows what a handover is; left out by an older runtime. */
  handsOver?: boolean
}

/**
 * ready: booted, nothing of any customer loaded · begun: has read its `start` · out, err: bytes the program wrote to stdout or
 * stderr · phase, log: JSON of the event's data · children: other processes may have been started · returned: the output as JSON
 * text · threw: JSON of a `ThrownError` · idle: JSON of an `IdleReport` · journal: JSON of a `JournalOp` · park: JSON of a
 * `ParkReport`; nothing but waits is left, and the process waits for a message · live: the replay is over, what follows is new ·
 * blocked: JSON of a `Mismatch` · rejoin: JSON of a `RejoinReport`
 */
export type FrameName =
  | 'ready'
  | 'begun'
  | 'out'
  | 'err'
  | 'phase'
  | 'log'
  | 'children'
  | 'returned'
  | 'threw'
  | 'idle'
  | 'journal'
  | 'park'
  | 'live'
  | 'blocked'
  | 'rejoin'

/** The code on the wire, one ASCII letter each. `satisfies` this on both sides and they cannot drift apart. */
export type FrameCodes = {
  ready: 'r'
  begun: 'b'
  out: 'o'
  err: 'e'
  phase: 'p'
  log: 'l'
  children: 'c'
  returned: 'R'
  threw: 'T'
  idle: 'i'
  journal: 'j'
  park: 'k'
  live: 'L'
  blocked: 'B'
  rejoin: 'J'
}

export interface ParkReport {
  waitsFor: SuspendKind
  /** How many `wake` messages the process had read for the run when it said so. With more on their way it is not at rest. */
  heard: number
}

export type LogLevel = 'info' | 'warn' | 'error'

export interface LogData {
  text: string
  level?: LogLevel
  fields?: Record<string, unknown>
  /** The message is longer than this: its next piece follows in the next `log`. Between program and agent only. */
  more?: true
}

/** Sent between two runs of a process that stays. Anything left over retires the process. */
export interface IdleReport {
  leftovers: string[]
  /** What former runs of the process have tried while this one had it; nothing came of it. Retires it as well. */
  strays: string[]
}
