import type { LedBy } from '@windlass/shared/model/ending.ts'
import type { Completion, JournalRecord, Mismatch } from '@windlass/shared/wire/journal.ts'
import type { WaitCall } from '../waits.ts'
import { whenAnswered } from './answers.ts'
import { createArrival } from './arrival.ts'
import type { Call, Scope } from './call.ts'
import { createCalling } from './calling.ts'
import { Entries } from './entries.ts'
import { createGivenFailures } from './given-failures.ts'
import { createHandover } from './handover.ts'
import { createHolds } from './holds.ts'
import { Inbox } from './inbox.ts'
import { createOutbox, type Outbox } from './outbox.ts'
import { counts, createLeftBehind } from './left-behind.ts'
import type { Pending } from './pending.ts'
import type { Engine, EngineOptions, Port } from './port.ts'
import { Replay, undelivered } from './replay.ts'
import { createScopes } from './scopes.ts'
import type { Outcome } from './step.ts'
import { isAtRest, isOpen, isOver, isReplay, transition, type Action, type Event, type State } from './states.ts'

export function createEngine(options: EngineOptions, port: Port): Engine {
  return new JournalEngine(options, port)
}

/**
 * The driver of the states in `states.ts`. A public method is something that happens: the program calls, a result
 * comes, the program stands still, the run ends. What it means depends on the state, and `#move` alone changes that.
 */
class JournalEngine implements Engine {
  readonly #port: Port
  readonly #hold = createHolds((on) => this.#port.holdOn(on))
  readonly #outbox: Outbox
  readonly #scopes = createScopes()
  readonly #calling = createCalling(this.#scopes)
  readonly #inbox = new Inbox()
  readonly #arrival = createArrival(() => this.#state === 'replaying' && this.#port)
  readonly #handover = createHandover()
  readonly #failures = createGivenFailures()
  readonly #leftBehind = createLeftBehind((text) => this.#port.warn(text))
  readonly #replay: Replay
  readonly #entries: Entries
  #state: State
  /** How many results the program of this attempt was given. */
  #order: number
  /** How many times `wake` was called. */
  #heard = 0
  /** Why the run is to end. Set before it is stopped. */
  #reason!: Error
  #isTurnComing = false
  /** The program. */
  #hasThrown = false

  readonly #actions: Readonly<Record<Action, () => void>> = {
    sayLive: () => this.#port.live(),
    readyResults: () => {
      for (const n of this.#inbox.numbers()) this.#makeReady(n)
    },
    beginHeld: () => {
      for (const call of this.#replay.takeHeld()) this.#entries.begin(call)
    },
    hold: () => this.#hold('state', true),
    letGo: () => this.#hold('state', false),
    // A program that throws is tried again, and what it was given last tells why it threw.
    finish: () => (this.#hasThrown ? this.#outbox.flush() : this.#outbox.release()),
    close: () => {
      this.#outbox.close()
      this.#entries.stopTimers()
    },
    rejectWaits: () => this.#entries.refuseAll(this.#reason, [...this.#replay.takeHeld(), ...this.#handover.calls]),
  }

  constructor(options: EngineOptions, port: Port) {
    const own = options.journal.filter((record) => record.attempt === options.attempt)
    const replayed = options.replay ? own : []
    this.#port = port
    this.#state = options.replay ? 'replaying' : 'live'
    this.#order = own.reduce((most, { delivered }) => Math.max(most, delivered ?? 0), 0)
    this.#outbox = createOutbox(port, (on) => this.#hold('keeping', on))
    this.#entries = new Entries(options, {
      port,
      outbox: this.#outbox,
      scopes: this.#scopes,
      leftBehind: this.#leftBehind,
      complete: (completion) => this.#completeOwn(completion),
      adopted: (record) => this.#adopted(record),
      threw: (step, error) => this.#failures.threw(step, error),
      gave: (error, call) => this.#failures.add(error, call),
      isWithheld: (step, scope, outcome) => this.#isWithheld(step, scope, outcome),
      nearest: (calls) => this.#replay.nearest(calls),
      isOver: () => isOver(this.#state),
      turnSoon: () => this.#turnSoon(),
    })
    this.#replay = new Replay(replayed, {
      bind: (record, call) => this.#entries.bind(record, call),
      give: (completion) => this.#give(completion),
      drifted: (n, args) => this.#outbox.send({ op: 'drift', n, args }),
      block: (mismatch) => this.#block(mismatch),
    })
    for (const completion of undelivered(replayed)) this.#inbox.add(completion)
  }

  #move(event: Event): void {
    const [state, actions] = transition(this.#state, event)
    this.#state = state
    for (const action of actions) this.#actions[action]()
  }

  // The program calls.

  wait(wait: WaitCall): Promise<unknown> {
    return this.#make(this.#calling.wait(wait))
  }

  step(name: string, act: () => unknown): Promise<unknown> {
    return this.#make(this.#calling.step(name, act))
  }

  #make(call: Call): Promise<unknown> {
    if (this.#state === 'stopped') this.#entries.refuse(call, this.#reason, this.#replay.recorded(call))
    else if (isOpen(this.#state)) this.#enter(call)
    return call.promise
  }

  #enter(call: Call): void {
    if (counts(call)) call.within?.unsettled.add(call)
    if (isReplay(this.#state) && this.#replay.take(call)) return this.#turnSoon()
    if (!isReplay(this.#state)) this.#leftBehind.isNew(call)
    if (this.#handover.takes(call)) return
    call.site = this.#port.site()
    if (this.#state === 'resting') this.#move('caughtUp')
    if (this.#state === 'replaying') this.#replay.hold(call)
    else this.#entries.begin(call)
  }

  /** True: neither the journal nor the program hears of it. */
  #isWithheld(step: Pending, scope: Scope, outcome: Outcome): boolean {
    if (this.#handover.withholds(step, scope, outcome)) return true
    if (outcome.state === 'done' || !isReplay(this.#state)) return false
    // The run may be stopped in place of being blocked.
    return this.#replay.hasFailed(step.call, outcome.result) && isOver(this.#state)
  }

  // Results come in.

  wake(completions: readonly Completion[]): void {
    this.#heard += 1
    if (!isOpen(this.#state)) return
    for (const completion of completions) this.#complete(completion)
    if (!isAtRest(this.#state)) return
    if (this.#entries.waitsForAny(this.#inbox)) this.#move('woken')
    // Nothing that it waits for: whoever woke it has to know that it still waits.
    else this.#park()
  }

  confirm(count: number): void {
    this.#outbox.confirm(count)
  }

  #complete(completion: Completion): void {
    if (isOver(this.#state) || !this.#inbox.add(completion)) return
    // What comes during a replay is given after it.
    if (!isReplay(this.#state)) this.#makeReady(completion.n)
  }

  /** Of a step or a short sleep, which may end while the replay rests: nobody else would wake the program for it. */
  #completeOwn(completion: Completion): void {
    this.#complete(completion)
    if (this.#state === 'resting' && this.#entries.pending.has(completion.n)) this.#move('caughtUp')
  }

  #adopted(former: JournalRecord): void {
    const { n, state, result } = former
    if (state !== 'open') this.#inbox.add({ n, state, result: result ?? 'null' })
    if (this.#inbox.has(n)) this.#makeReady(n, former)
  }

  /** What nobody has asked for yet stays where it is until somebody does. */
  #makeReady(n: number, former?: JournalRecord): void {
    if (!this.#entries.pending.has(n)) return
    this.#inbox.makeReady(n, former)
    this.#turnSoon()
  }

  // Results go to the program: one, and then it does what it can with it before it is given the next.

  #turnSoon(): void {
    if (this.#isTurnComing) return
    this.#isTurnComing = true
    this.#port.soon(() => {
      this.#isTurnComing = false
      if (isOpen(this.#state) && this.#turn()) this.#turnSoon()
    })
  }

  /** True: there may be more. */
  #turn(): boolean {
    return isReplay(this.#state) ? this.#replay.step() : this.#deliver()
  }

  #deliver(): boolean {
    const completion = this.#inbox.nextReady((former) => this.#entries.retracing.mayGive(former))
    if (!completion) return false
    const isQuiet = this.#port.isQuiet(this.#entries.timers)
    const deadline = this.#entries.deadlineOf(completion)
    this.#outbox.delivered([++this.#order, completion.n, this.#entries.made, isQuiet ? 1 : 0], deadline)
    this.#give(completion)
    return this.#inbox.hasReady()
  }

  #give(completion: Completion): void {
    this.#inbox.given(completion.n)
    this.#entries.settle(completion)
  }

  // The program stands still.

  idle(): boolean {
    if (!isOpen(this.#state)) return isOver(this.#state) || this.#entries.goOn()
    const { retracing } = this.#entries
    return this.#idleInReplay() || retracing.standsStill(this.#inbox.firstReady, this.#handover) || this.#park()
  }

  /** True: the replay has something to do, or is blocked. */
  #idleInReplay(): boolean {
    if (!isReplay(this.#state)) return false
    // A program that heard of the stop, or lacks what is withheld, leaves: its replay elsewhere comes further.
    const turn = this.#replay.idle(this.#handover.isWithholding)
    if (turn !== 'again' && this.#arrival.come()) return true
    if (turn === 'live' || (turn === 'park' && this.#entries.waitsForAny(this.#inbox))) this.#move('caughtUp')
    // Nothing else may keep the process: the calls that it has become live with are told of in a moment.
    if (turn === 'again' || turn === 'live') this.#turnSoon()
    return turn !== 'park' && turn !== 'left'
  }

  /** False: there is nothing that anybody could wake it with. */
  #park(): boolean {
    const kind = this.#entries.waitedFor()
    if (!kind || this.#handover.isWithholding) return false
    this.#move('idle')
    this.#port.together(() => {
      this.#outbox.flush()
      this.#port.park(kind, this.#heard)
    })
    return true
  }

  #block(mismatch: Mismatch): void {
    if (this.#arrival.come()) return
    this.#move('strayed')
    this.#port.blocked(mismatch)
  }

  // The run ends.

  answered(): Promise<void> {
    this.#entries.retracing.giveUp()
    const given = { pending: this.#entries.pending, results: this.#inbox, outbox: this.#outbox, port: this.#port }
    return whenAnswered(given, () => isOpen(this.#state) && !isReplay(this.#state))
  }

  handOver(mayKnow: () => boolean): void {
    this.#handover.begin(mayKnow)
    this.#outbox.hurry()
  }

  lacksFailure(): boolean {
    return this.#handover.lacksFailure
  }

  isExecuting(): boolean {
    return this.#entries.isExecuting((call) => this.#handover.hasWithheld(call))
  }

  ledBy(thrown: unknown): LedBy | undefined {
    return this.#failures.behind(thrown)
  }

  whenThere(act: () => void, withinMs: number): void {
    this.#arrival.putOff(act, withinMs)
  }

  stop(reason: Error, patienceMs: number): void {
    if (!isOpen(this.#state)) return
    this.#reason = reason
    this.#entries.mayRefuse(patienceMs, isReplay(this.#state) ? [...this.#replay.unissued()] : undefined)
    this.#move('stopped')
  }

  end(how: string, hasThrown = false): boolean {
    this.#hasThrown = hasThrown
    if (this.#state === 'replaying') this.#replay.block(how)
    // What it has called and does not wait for is called all the same.
    this.#move('ended')
    return this.#state === 'ended'
  }
}
