import type { LedBy } from '@windlass/shared/model/ending.ts'
import type { Completion, JournalOp, JournalRecord, Mismatch, SuspendKind } from '@windlass/shared/wire/journal.ts'
import type { Waits } from '../waits.ts'

/** What the engine needs of the process around it. Tests put a simulated world in its place. */
export interface Port {
  send(op: JournalOp): void
  /** What is said within arrives as one piece. */
  together(say: () => void): void
  /** Nothing but waits is left, after so many calls of `wake`. */
  park(kind: SuspendKind, heard: number): void
  /** The replay is over, what follows is new. */
  live(): void
  blocked(mismatch: Mismatch): void
  /** Whether the process stays although nothing of the program keeps it. */
  holdOn(hold: boolean): void
  /** Whether nothing of the program is in flight, apart from `timers` of the engine. */
  isQuiet(timers: number): boolean
  /** Where the program made the call that is being made: `index.ts:12:9`. */
  site(): string
  /** Into the log of the run. */
  warn(text: string): void
  /** In the next turn of the loop, when all that can follow at once has followed. */
  soon(act: () => void): void
  /** Returns what stops it. `keeps`: the process stays until then. */
  later(ms: number, keeps: boolean, act: () => void): () => void
}

export interface EngineOptions {
  attempt: number
  journal: readonly JournalRecord[]
  /** Number of the last entry of the run, handed over or not. */
  entries: number
  /** Number of the last one that was forgotten with its attempt: room is counted from there. */
  forgotten: number
  replay: boolean
}

/** The journal of one run in one process. */
export interface Engine extends Waits {
  /** The same completion may come twice. */
  wake(completions: readonly Completion[]): void
  /** The first `count` of the words that were sent are committed. */
  confirm(count: number): void
  /**
   * The program has returned. Resolves when its calls are committed, and it has been given what came of those that
   * were refused: a rejection that nobody handles fails the run then too.
   */
  answered(): Promise<void>
  /**
   * The run goes on elsewhere, and what comes to its end here counts. A step that fails is withheld, and so is a call
   * of a program that `mayKnow` of it, or goes on without such a failure: the next attempt does them.
   */
  handOver(mayKnow: () => boolean): void
  /** The program has not heard of a step that failed. With that it might have come to something else. */
  lacksFailure(): boolean
  /** A step is under way, or what it has come to is not committed yet. */
  isExecuting(): boolean
  /** The failures that the program was given to which what it has thrown leads. Undefined: to none. */
  ledBy(thrown: unknown): LedBy | undefined
  /**
   * Calls it once the program stands where its last process stood, after so long at the latest; at once where it is not
   * being led there. What it would be told before, it would take for having come at another point of the run.
   */
  whenThere(act: () => void, withinMs: number): void
  /**
   * The run is to end: whatever is waited for rejects with this, now and from now on. What has been recorded of the run
   * goes on to be given, in the order of before. `patienceMs`: a program that is not where it stood has this long to
   * come there, before what is open rejects.
   */
  stop(reason: Error, patienceMs: number): void
  /** Nothing of the program is in flight. False: it waits for nothing that could come, and can never go on. */
  idle(): boolean
  /**
   * The program has ended: `how`, in words. `hasThrown`: and is perhaps tried again. False: it could not have ended
   * there, and the run is blocked.
   */
  end(how: string, hasThrown?: boolean): boolean
}
