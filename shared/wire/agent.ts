import { z } from 'zod'
import { RunId, Slug } from '../ids.ts'
import type { Marks } from '../json-nesting.ts'
import type { Ending } from '../model/ending.ts'
import { PoolSettings } from '../model/pool.ts'
import { RunTrigger } from '../model/run.ts'
import type { EffectiveIsolation, IntakeState, Unready } from '../model/runner.ts'
import type { Completion, SuspendKind } from './journal.ts'

/** Raised when something is added that an older side would miss. What a single agent can do, it says as capabilities. */
export const PROTOCOL = 1
/** Agents of this one and of those between are served, marked, and told how to upgrade; older ones are refused. */
export const OLDEST_PROTOCOL = 1
/** A protocol as an agent says it. Previews said a bare number, 2 to 4, which must never pass for one of these. */
export type ProtocolName = `windlass/${number}`
export const PROTOCOL_NAME: ProtocolName = `windlass/${PROTOCOL}`

/** Number of the protocol that an agent says, undefined for what is no name of one. */
export function protocolOf(said: unknown): number | undefined {
  const number = typeof said === 'string' ? /^windlass\/(\d{1,5})$/.exec(said)?.[1] : undefined
  return number === undefined ? undefined : Number(number)
}

/** An agent waits so long from its dialling for its welcome, and ends the connection then. */
export const WELCOME_MS = 20_000

/** Slots of one runner. What had more would be nobody's machine, and autoscalers believe it. */
export const MOST_SLOTS = 1024
/**
 * What an agent may name as its own in one frame: parked runs and those that have ended but are not known to the
 * coordinator, too.
 */
export const MOST_HOLDS = 16 * MOST_SLOTS
/** Processes that an agent keeps parked. The rest is for its slots, and for what has ended. */
export const MOST_PARKED = MOST_HOLDS - 2 * MOST_SLOTS

/** What an agent can do beyond what its protocol asks of all. */
export const CAPABILITIES = ['bubblewrap', 'cgroup', 'own-user', 'hooks', 'takeover'] as const
export type Capability = (typeof CAPABILITIES)[number]

/** Audience of the tokens that agents sign themselves. */
export const AGENT_AUDIENCE = 'windlass-agent'

/** `detail.reason` of the refusal that an agent of a revoked runner gets which nobody could tell when it was revoked. */
export const REVOKED_REASON = 'revoked'
/** And of the refusal of a token that was signed with another key than that of the runner. */
export const OTHER_KEY_REASON = 'other-key'

/** How the fleet is to behave; handed out at registration and in `welcome`. All lengths in milliseconds. */
export const AgentSettings = z.object({
  heartbeatMs: z.int(),
  /** The agent kills what it runs this long after the sending of its last acknowledged heartbeat. */
  fenceMs: z.int(),
  cancelGraceMs: z.int(),
  pollMs: z.int(),
  /** It makes itself a new key when its present one is so old. */
  renewKeyMs: z.number().optional(),
  /** What the pool says for all its machines. */
  pool: PoolSettings.pick({
    isolation: true,
    network: true,
    slots: true,
    limits: true,
    parkedMs: true,
    drainMs: true,
  }).optional(),
})
export type AgentSettings = z.output<typeof AgentSettings>

/** Everything an agent needs to execute a run. It counts as taken only when `accepted` has come back. */
export const Offer = z.object({
  run: RunId,
  attempt: z.int(),
  epoch: z.int(),
  org: Slug,
  workflow: z.object({ slug: Slug, version: z.int() }),
  environment: z.string().nullable(),
  /** How it was started. Older coordinators do not say it. */
  trigger: RunTrigger.optional(),
  /** The input as JSON text. */
  inputText: z.string(),
  bundle: z.object({ digest: z.string(), bytes: z.int() }),
  process: z.enum(['fresh', 'reuse']),
  /** Slots that it occupies while it executes. */
  slots: z.int().default(1),
  /** Only processes of runs with the same key may serve one another. */
  reuseKey: z.string(),
  /** What is left of the time that this attempt may execute; waiting does not count. */
  timeoutMs: z.int(),
  graceMs: z.int(),
  outputBytes: z.int(),
  /** What the program may put into an event, as JSON. Coordinators that do not say it take events of 64 KiB in all. */
  eventDataBytes: z.int().optional(),
  /** The run is suspended and continues: its journal is replayed, and what it logs meanwhile was logged before. */
  replay: z.boolean(),
  /**
   * Entries of the journal; 0: there is none to hand over. So many of them were forgotten with earlier attempts. `text`
   * is JSON of `JournalRecord[]`, null when it has to be fetched.
   */
  journal: z.object({ entries: z.int(), forgotten: z.int().optional(), text: z.string().nullable() }),
  /** What the program finds in its environment; the same in every attempt of a run. */
  variables: z.record(z.string(), z.string()),
  /** There are secrets, which the agent reads with `token` before each start of a process, and hands on like variables. */
  secrets: z.boolean(),
  token: z.string(),
})
export type Offer = z.output<typeof Offer>

/** Names a placement of this link's runner. Each frame about a run carries it; late ones have no effect. */
export type Placement = readonly [run: string, epoch: number]

/**
 * What happened in a run, numbered 1, 2, 3 … by its agent within the placement. An event is [at, type, data as JSON text];
 * `start` says that the program's process has begun, `j` is a word about the journal (JSON of a `JournalOp`), `end` is the last
 * entry. `park`: the program only waits, and its slot is free; `computeMs` is what it has computed since `start` or `resume`.
 * `resume`: it goes on, a replay being over; with `timed-out` it goes on in its grace alone, as the time of its attempt
 * is used up. That is in the spool before the program hears of it. Older coordinators pass over this word. Kept in the
 * agent's spool until acknowledged.
 */
export type Entry =
  | readonly ['e', at: number, type: string, dataText: string]
  | readonly ['start', at: number, isolation?: EffectiveIsolation]
  | readonly ['j', at: number, opText: string]
  | readonly ['park', at: number, waitsFor: SuspendKind, computeMs: number]
  | readonly ['resume', at: number, why?: 'timed-out']
  | readonly ['end', at: number, ending: Ending, computeMs: number]

/** The longest word about a journal: the input of a child or the result of a step, each of 1 MiB, in which quotes are doubled twice. */
export const JOURNAL_CHARS = 4 * 1024 * 1024
/** Its marks: of a word that tells of 1000 results, and more than any other has. */
export const JOURNAL_MARKS: Marks = { opened: 2000, names: 1000, commas: 10_000 }

export interface EntryBatch {
  run: string
  epoch: number
  /** Number of the first entry. */
  first: number
  entries: Entry[]
}

/** Which start of which agent speaks: how a copy of a state folder is told from the agent that was started again. */
export interface Instance {
  /** Made anew at each start, once the one before is written down as welcomed. */
  id: string
  /** Earlier starts with this state folder that may have been welcomed, the last first; two at most. */
  previous: string[]
  /** Digest of what names the machine and the folder. */
  host: string
  /**
   * Digest of the machine and the folder, without its disk, whose number another boot may change. Only where the
   * machine has an id.
   */
  folder?: string
  /** Digest of what names the machine's present boot. */
  boot: string
  /** Made anew by each process, and in no file: a start that could not be written down hands its id on to the next. */
  process?: string
  /** Epoch of the cluster that welcomed it last: what it holds was given out in that one. */
  cluster?: string
}

/** What an agent says about itself, in `hello` and whenever it changes. */
export interface AgentFacts {
  labels: string[]
  platform: string
  capabilities: string[]
  isolation: EffectiveIsolation | null
  /** What keeps it from taking work, in its own words. */
  unready: Unready[]
}

/** Agent → coordinator. One JSON text per WebSocket message. */
export type AgentFrame =
  /**
   * First frame of each connection. `holds` is everything that the agent executes or still has in its spool. `instance` and
   */
  | {
      t: 'hello'
      protocol: ProtocolName
      version: string
      slots: number
      holds: Placement[]
      instance?: Instance
      /** Counts the connections of this process, 1, 2, 3 …: its agent has given up those below the highest. */
      connection?: number
      facts?: AgentFacts
      /** After how long a silence it stops its runs, as it was last told. */
      fenceMs?: number
      /** How long ago its machine was started. What was heard of its runner since then comes from another machine. */
      bootAgeMs?: number
    }
  | { t: 'accept'; runs: Placement[] }
  /** Offers that it will not accept after all: they go back at once, and it is not to blame. */
  | { t: 'decline'; runs: Placement[] }
  | { t: 'entries'; batches: EntryBatch[] }
  /** Renews the leases of `holds`. `n` comes back in the answer, which alone tells the agent that it may go on. */
  | { t: 'heartbeat'; n: number; holds: Placement[]; slots?: number; facts?: AgentFacts; fenceMs?: number }
  /** It is being stopped: it gets no more, until its next start. What was offered and not accepted goes back at once. */
  | { t: 'leave'; reason: string; deadlineMs: number }
  /** Asks for new per-run tokens, which live 10 minutes. */
  | { t: 'renew'; runs: Placement[] }

/** What the coordinator says about a runner's work. It stays true until another epoch is heard of. */
export interface IntakeNotice {
  state: IntakeState
  epoch: number
  reason: string
  deadlineAt: number | null
}

/** Coordinator → agent. `now` is the coordinator's clock. */
export type CoordinatorFrame =
  | {
      t: 'welcome'
      cluster: string
      settings: AgentSettings
      resume: { run: string; epoch: number; seq: number }[]
      stale: Placement[]
      cancel: CancelOrder[]
      intake?: IntakeNotice
      now?: number
      /** Characters that a part has at least which is not the last one of its frame. */
      leastPartChars?: number
    }
  /** `no` are offers that came too late; their runs belong to others by now. */
  | { t: 'accepted'; runs: Placement[]; no: Placement[] }
  /** All entries up to and including `seq` are committed. */
  | { t: 'ack'; acks: { run: string; epoch: number; seq: number }[] }
  | {
      t: 'beat'
      n: number
      stale: Placement[]
      cancel: CancelOrder[]
      settings?: AgentSettings
      intake?: IntakeNotice
      now?: number
    }
  /** Said as soon as it changes, and again with each beat. */
  | { t: 'intake'; intake: IntakeNotice }
  | { t: 'cancel'; runs: CancelOrder[] }
  /** Kill without report and forget: another process has the run, or it has ended. */
  | { t: 'stale'; runs: Placement[] }
  /** The coordinator has everything up to `seq` and lacks the next: send again from there. */
  | { t: 'resume'; runs: { run: string; epoch: number; seq: number }[] }
  | { t: 'tokens'; runs: { run: string; epoch: number; token: string }[] }
  /**
   * What these runs waited for is there. Said again with each welcome and heartbeat until the program has been given it, so
   * hearing it twice means nothing. A parked program goes on as soon as there is a slot.
   */
  | { t: 'wake'; runs: Wake[] }
  /** Sent before the socket is closed for good, with a sentence for the agent's log. */
  | { t: 'refused'; code: 'UPGRADE_REQUIRED' | 'REPLACED' | 'REVOKED'; message: string }

export interface CancelOrder {
  run: string
  epoch: number
  /** `timed-out`: the run has used up the time from its creation on. */
  why: 'cancelled' | 'timed-out'
  reason: string
  graceMs: number
}

export interface Wake {
  run: string
  epoch: number
  completions: Completion[]
}
