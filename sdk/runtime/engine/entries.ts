import type { Completion, JournalOp, JournalRecord, SuspendKind } from '@windlass/shared/wire/journal.ts'
import { identityOf, settle, type Call, type Scope } from './call.ts'
import { createFormer } from './former.ts'
import { pathOf } from './identity.ts'
import type { Inbox } from './inbox.ts'
import type { LeftBehind } from './left-behind.ts'
import type { Alike } from './likeness.ts'
import { checkRoom } from './limits.ts'
import type { Outbox, Deadline } from './outbox.ts'
import { isAnyPending, outcomeBefore, outcomeOf, deadlineOf, waitedFor, type Pending } from './pending.ts'
import type { EngineOptions, Port } from './port.ts'
import { createRefused } from './refused.ts'
import { createRetracing, PATIENCE_MS, withPatience, type Patience } from './retracing.ts'
import type { Scopes } from './scopes.ts'
import { executeStep, type Outcome } from './step.ts'

// Shorter ones are not worth a word to anybody.
const SHORT_MS = 1_000

interface EntriesNeeds {
  port: Port
  outbox: Outbox
  scopes: Scopes
  /** The program itself has brought a call to its end. */
  complete(completion: Completion): void
  /** A call has taken over the entry of an earlier attempt, with whatever came of it. */
  adopted(record: JournalRecord): void
  /** A step has come to this. True: the journal is not to have it, and the program gets nothing more. */
  isWithheld(step: Pending, scope: Scope, outcome: Outcome): boolean
  /** The function of a step has thrown that. */
  threw(step: Call, error: unknown): void
  /** The program was given this error. */
  gave(error: Error, call: Call): void
  leftBehind: LeftBehind
  /** What a replay has recorded of one of these with other arguments, as long as it is not through; see `Refused`. */
  nearest(calls: readonly Call[]): Alike | undefined
  /** Nothing is said to anybody, and nothing given to the program. */
  isOver(): boolean
  /** Something may be given that could not be given before. */
  turnSoon(): void
}

/** Each step that is told so costs a word more, and no round trip. */
const BEHIND_FAILURE = 200

/** The calls that the program has not been given a result of, each with its entry in the journal. */
export class Entries {
  readonly #needs: EntriesNeeds
  readonly #former: ReturnType<typeof createFormer>
  readonly #refused: ReturnType<typeof createRefused>
  #retracing: Patience
  readonly #pending = new Map<number, Pending>()
  /** Number of the last entry. */
  #last: number
  readonly #forgotten: number
  /** How many calls this attempt has made, those that are replayed included. */
  #made: number
  /** How many timers of ours run for short sleeps. */
  #timers = 0
  /** So many results more, steps may follow from the last failure that the program was given. */
  #behindFailure = 0

  constructor({ attempt, journal, entries, forgotten, replay }: EngineOptions, needs: EntriesNeeds) {
    this.#needs = needs
    this.#refused = createRefused({ ...needs, retracing: () => this.#retracing })
    const before = journal.filter((record) => record.attempt < attempt)
    this.#former = createFormer(before)
    // A replay leads to where the program stood still.
    const retracing = createRetracing(replay ? [] : before, (record) => this.#former.isLeftOut(record))
    this.#retracing = withPatience(retracing, needs, PATIENCE_MS)
    this.#last = journal.reduce((most, { n }) => Math.max(most, n), entries)
    this.#forgotten = forgotten
    const replayed = replay ? journal.filter((record) => record.attempt === attempt) : []
    this.#made = replayed.reduce((most, { position }) => Math.max(most, position), 0)
  }

  get pending(): ReadonlyMap<number, Pending> {
    return this.#pending
  }

  get made(): number {
    return this.#made
  }

  get retracing(): Patience {
    return this.#retracing
  }

  get timers(): number {
    return this.#timers
  }

  /** Whether the program waits for any of these. */
  waitsForAny(results: Pick<Inbox, 'numbers'>): boolean {
    return isAnyPending(results.numbers(), this.#pending)
  }

  /** A step is under way, or what it has come to is not committed yet; but for those that are left out. */
  isExecuting(isLeftOut: (step: Call) => boolean): boolean {
    for (const { call, outcome } of this.#pending.values())
      if (call.kind === 'step' && outcome?.state !== 'failed' && !isLeftOut(call)) return true
    return false
  }

  /** Before what the journal has to have that the program was given the result of this one. */
  deadlineOf({ n, state }: Completion): Deadline {
    return deadlineOf(this.#pending.get(n)!, state, this.#pending.size)
  }

  /** What people are told that the program waits for. */
  waitedFor(): SuspendKind | undefined {
    return waitedFor(this.#pending.values())
  }

  /** A call that no process of this attempt has made before. */
  begin(call: Call): void {
    this.#openScopes(call.within)
    this.#retracing.called(call)
    if (!this.#retracing.isOver) this.#needs.turnSoon()
    const record = this.#former.take(call)
    if (record) return this.#adopt(record, call)
    try {
      checkRoom(this.#last + 1 - this.#forgotten, (text) => this.#needs.port.warn(text))
    } catch (error) {
      call.within?.unsettled.delete(call)
      return call.reject(error as Error)
    }
    this.#last += 1
    this.#made += 1
    Object.assign(call, { n: this.#last, position: this.#made })
    this.#open(call)
  }

  /** The call is the one of this entry. */
  bind(record: JournalRecord, call: Call): void {
    const { n, position, site, state } = record
    Object.assign(call, { n, position, site })
    this.#pending.set(n, { call, record })
    if (call.kind === 'step' && state === 'open') void this.#execute(call, true)
  }

  /** Gives the program the result. */
  settle(completion: Completion): void {
    const found = this.#pending.get(completion.n)
    this.#pending.delete(completion.n)
    if (completion.state === 'failed') this.#behindFailure = BEHIND_FAILURE
    else if (this.#behindFailure > 0) this.#behindFailure -= 1
    const error = found && settle(found.call, completion)
    if (error) this.#needs.gave(error, found.call)
  }

  /**
   * The run is to end: waits reject, and steps are executed without an entry. But for those that an earlier process has
   * had done, or has got past: nothing is done twice, and what has happened is no news.
   */
  refuse(call: Call, reason: Error, record = this.#former.take(call)): void {
    // Nobody may be looking at it just now, and that is no reason to end the run in the midst of its tidying up.
    call.promise.catch(() => {})
    this.#retracing.called(call)
    const outcome = outcomeBefore(record)
    if (outcome && call.kind === 'step') this.#retracing.cover(call)
    if (outcome) this.#refused.give(call, outcome, record)
    else if ('act' in call.work) void this.#execute(call, true)
    else this.#refused.reject(call, reason, record !== undefined)
  }

  /**
   * The run is to end. `missing`: what a replay has recorded that the program has not come to. What is open does not
   * reject before it is there, or so much time has passed.
   */
  mayRefuse(patienceMs: number, missing: readonly JournalRecord[] | undefined): void {
    if (missing) this.#retracing = withPatience(createRetracing(missing), this.#needs)
    this.#refused.begin(patienceMs)
  }

  /** In a run that is to end nothing of the program is in flight. True: it is given something. */
  goOn(): boolean {
    return this.#refused.goOn()
  }

  /**
   * What is pending, and what was called and not begun. Steps that are being executed go on, and their results go to
   * the program and nowhere else.
   */
  refuseAll(reason: Error, calls: readonly Call[]): void {
    for (const found of this.#pending.values()) {
      const outcome = outcomeOf(found)
      if (found.call.kind !== 'step') this.refuse(found.call, reason, found.record)
      else if (outcome) this.#refused.give(found.call, outcome, found.record)
    }
    this.#pending.clear()
    for (const call of calls) this.refuse(call, reason)
  }

  stopTimers(): void {
    for (const { stopTimer } of this.#pending.values()) stopTimer?.()
  }

  #hasOutcome(n: number): boolean {
    const found = this.#pending.get(n)
    return found !== undefined && outcomeOf(found) !== undefined
  }

  #adopt(record: JournalRecord, call: Call): void {
    this.#made += 1
    this.#needs.outbox.send({ op: 'adopt', n: record.n, position: this.#made })
    if (record.kind === 'step' && record.state !== 'open') this.#retracing.cover(record)
    this.bind({ ...record, position: this.#made }, call)
    this.#needs.adopted(record)
  }

  #open(call: Call): void {
    this.#pending.set(call.n, { call })
    if ('act' in call.work) return void this.#execute(call, this.#openBehindFailure(call))
    const { ask } = call.work.wait
    // A moment is one of the coordinator's clock, and that of this host may be off.
    const ms = ask.for === 'sleep' && 'ms' in ask ? ask.ms : Infinity
    if (ms < SHORT_MS) return this.#doze(call, ms)
    this.#needs.outbox.sendSoon({ op: 'open', entry: identityOf(call), ask })
  }

  /**
   * Steps that may follow from a failure are told before they are executed. An attempt that is lost amid one has got
   * past that failure: with another outcome the next one would take another way than the one whose effect may be there.
   * Nobody knows which step it is, as a handler may wait first while other branches go on.
   */
  #openBehindFailure(call: Call): boolean {
    if (this.#behindFailure === 0) return false
    this.#needs.outbox.send({ op: 'open', entry: identityOf(call), ask: { for: 'step' } })
    return true
  }

  /** A step in whose function something is called gets its entry before that. */
  #openScopes(scope: Scope | undefined): void {
    if (!scope || scope.isOpen) return
    this.#openScopes(scope.call.within)
    scope.isOpen = true
    this.#needs.outbox.send({ op: 'open', entry: identityOf(scope.call), ask: { for: 'step' } })
  }

  #doze(call: Call, ms: number): void {
    const { port, outbox } = this.#needs
    this.#timers += 1
    const stopTimer = port.later(ms, true, () => {
      this.#timers -= 1
      delete this.#pending.get(call.n)?.stopTimer
      outbox.gather(identityOf(call))
      this.#needs.complete({ n: call.n, state: 'done', result: 'null' })
    })
    this.#pending.set(call.n, { call, stopTimer, isShort: true })
  }

  async #execute(call: Call, isOpen: boolean): Promise<void> {
    if (!('act' in call.work)) return
    const path = pathOf(call.parent, call.name, call.occurrence)
    const scope: Scope = { path, isOpen, call, unsettled: new Set(), hasReturned: false }
    const { act } = call.work
    const outcome = await executeStep(this.#needs.scopes, scope, {
      act,
      threw: (error) => this.#needs.threw(call, error),
    })
    if (this.#needs.isOver()) return
    const found = this.#pending.get(call.n)
    if (found && this.#needs.isWithheld(found, scope, outcome)) return
    this.#retracing.cover(call)
    // The run is to end: what is recorded has happened before this.
    if (!found || !this.#pending.has(call.n)) return this.#refused.give(call, outcome)
    found.outcome = outcome
    // One that has failed is tried again, or somebody has dealt with it.
    if (outcome.state === 'done') this.#needs.leftBehind.returned(scope, ({ n }) => this.#hasOutcome(n))
    const close: JournalOp = { op: 'close', entry: identityOf(call), ...outcome }
    this.#needs.outbox.sendAndKeep(close, () => this.#needs.complete({ n: call.n, ...outcome }))
  }
}
