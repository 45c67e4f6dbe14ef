/**
 * The journal: what a run has asked for and what it got, so that a new process can be led to where the last one stood.
 * Types only; the program's side is loaded at each start of a process.
 */

/** `sleep` a time · `input` a question to people · `child` a run of another workflow · `step` a function of the program. */
export type EntryKind = 'sleep' | 'input' | 'child' | 'step'

/** What makes a call the same call in a replay: everything but `n`, `position`, `args` and `site`. */
export interface EntryIdentity {
  /** Number of the entry in its run: 1, 2, 3 … in the order of the calls, over all attempts. */
  n: number
  /** Which call of its attempt it is: 1, 2, 3 … An entry that is taken over from an earlier attempt keeps its `n` and gets a new place. */
  position: number
  /** Path of the step in whose function it was called, '' at the top: `/charge#1/confirm#2`. */
  parent: string
  kind: EntryKind
  /** Of a step its name, of a child the workflow, of a question its prompt cut to 200 characters, of a sleep ''. */
  name: string
  /** Hash of the arguments. */
  hash: string
  /** Counts calls that are equal in all of the above within the attempt: 1, 2, 3 … */
  occurrence: number
  /** The arguments as JSON text, cut to 500 characters: for people, and to find the most alike. */
  args: string
  /** Where it was called: `index.ts:12:9`. '' when unknown. */
  site: string
}

/** What the coordinator is to do for an entry. */
export type Ask =
  | { for: 'sleep'; ms: number }
  /** Milliseconds since the epoch, by the clock of the database. */
  | { for: 'sleep'; until: number }
  /** `schemaText`: JSON Schema of the answer. `onTimeoutText`: answer when time is up, as JSON; null: the call throws. */
  | {
      for: 'input'
      prompt: string
      schemaText: string | null
      timeoutMs: number | null
      onTimeoutText: string | null
    }
  | {
      for: 'child'
      workflow: string
      inputText: string
      version: number | null
      /** Undefined: that of the parent. */
      environment?: string | null
      tags: string[]
      priority: number
    }
  /** Nothing: a step in whose function something else is waited for. */
  | { for: 'step' }

export type EntryState = 'open' | 'done' | 'failed'

/**
 * One word of the program about its journal.
 * open: a call that somebody else completes · close: the program itself has completed it (steps, sleeps below a second), with its
 * identity, as it may not have been opened before · adopt: a call of this attempt that equals one of an earlier attempt, whose result
 * or wait it takes over · drift: a replayed call with other arguments than recorded · deliver: results that the program has been
 * given, as [order, n, after, idle]: counted 1, 2, 3 … within the attempt; the number of calls made by then; 1 when nothing else of
 * the program was in flight at that moment.
 */
export type JournalOp =
  | { op: 'open'; entry: EntryIdentity; ask: Ask }
  | { op: 'close'; entry: EntryIdentity; state: 'done' | 'failed'; result: string }
  | { op: 'adopt'; n: number; position: number }
  | { op: 'drift'; n: number; args: string }
  | { op: 'deliver'; list: Delivery[] }

export type Delivery = readonly [order: number, n: number, after: number, idle: 0 | 1]

/**
 * How an entry ended. `result` of `done`: of a step its value in the codec, of a question the answer as JSON, of a child its output as
 * JSON, of a sleep 'null'. Of `failed`: JSON of a `JournalError`.
 */
export interface Completion {
  n: number
  state: 'done' | 'failed'
  result: string
}

/** `code` tells the SDK which class to throw: RUN_FAILED, RUN_CANCELLED, INPUT_TIMED_OUT, CALL_REFUSED; a step keeps what it threw. */
export interface JournalError {
  name: string
  message: string
  code?: string | number
  stack?: string
  detail?: Record<string, unknown>
}

/** An entry as it is handed to a new process. */
export interface JournalRecord extends EntryIdentity {
  /** The attempt that called it last. Of an earlier attempt: it may be adopted; of this one: it is replayed. */
  attempt: number
  /** It was continued with other arguments than recorded, and that was noted. */
  drifted: boolean
  state: EntryState
  result: string | null
  /** Place in the order of deliveries; null: the program has not been given it yet. */
  delivered: number | null
  /**
   * How many calls had been made by then. It stays where that it was given is taken back: the attempt threw behind that
   * failure, which is to be tried again.
   */
  after: number
  idle: boolean
  /**
   * The last attempt before that was given it, its place in the order there, and how many calls that one had made by
   * then. Null: none was. Undefined, or without the calls: the coordinator is of a version before.
   */
  former?: readonly [attempt: number, order: number, after?: number] | null
  /**
   * That attempt was lost. False: it threw, is not over, or nobody has noted how it ended. Undefined: the coordinator
   * is of a version before.
   */
  lost?: boolean
  /** Place in the order of completions among those not delivered; null while open or completed by the program. */
  completed: number | null
}

/** Why a replay cannot go on. The run keeps its status, and a person decides. */
export interface Mismatch {
  /** What the journal has, as in `sleep(3600000) at index.ts:12:9`. */
  expected: string
  /** What the program did in its place. */
  received: string
  /** Where it did that: `index.ts:14:3`. '' when unknown. */
  at: string
  /** A step that was executed again failed: the next try may get further. */
  mayPass?: boolean
}

/** Why a run holds its place without computing. */
export type SuspendKind = 'sleep' | 'input' | 'child'
