import type { Completion } from '@windlass/shared/wire/journal.ts'
import type { CancelOrder, Entry, Offer } from '@windlass/shared/wire/agent.ts'
import type { RunningProgram } from './program/program.ts'

/**
 * Why this agent ends a program: another has the run, the lease ran out, the runner was revoked, the agent stops, the
 * coordinator has more than was written here, a part of what was written is missing.
 */
export type Fate = 'stale' | 'fenced' | 'revoked' | 'shutdown' | 'setBack' | 'incomplete'

/** What the coordinator said to our `accept`; `unknown` when it did not say anything in time. */
export type Verdict = 'ours' | 'refused' | 'unknown'

/** A run on this agent, from its offer until its program is gone. Orders may come at any moment of it. */
export class AgentRun {
  readonly offer: Offer
  readonly receivedAt = performance.now()
  readonly verdict: Promise<Verdict>
  /** Fires when there is no use in preparing it any more. */
  readonly unwanted: AbortSignal
  /** When the first `accept` was sent: the lease begins no earlier. */
  acceptSentAt = Infinity
  isAnswered = false
  /** When the per-run token of the moment was received. */
  tokenAt = performance.now()
  /** What the secrets have in all that its program was given. */
  secretBytes = 0
  cancelled: CancelOrder | undefined
  fate: Fate | undefined
  /** Its program was started by the agent before this one, and may not be attached yet. */
  isTakenBack = false
  /** Its program only waits, and has given its slot back. */
  isParked = false
  /** How often it has begun to wait. */
  parkings = 0
  #answer: (verdict: Verdict) => void = () => {}
  #program: RunningProgram | undefined
  #isRenewed = false
  /** When the grace is over in which it is handed over. */
  #handedOverAt = Infinity
  #endsAt = Infinity
  #onOrder: () => void = () => {}
  /** Positions in the spool of entries of the journal that are not committed yet, and how many are. */
  #uncommitted: number[] = []
  #committed = 0
  /** Came before there was a program. What is more is said again, with each heartbeat. */
  readonly #early: Completion[] = []
  #earlyChars = 0
  readonly #controller = new AbortController()
  readonly #deadline: NodeJS.Timeout

  constructor(offer: Offer, acceptMs: number) {
    this.offer = offer
    this.unwanted = this.#controller.signal
    this.verdict = new Promise((resolve) => (this.#answer = resolve))
    this.#deadline = setTimeout(() => this.answer('unknown'), acceptMs)
  }

  /** The first answer counts. */
  answer(verdict: Verdict): void {
    this.isAnswered = true
    clearTimeout(this.#deadline)
    if (verdict !== 'ours') this.#controller.abort()
    this.#answer(verdict)
  }

  /** Orders that came before there was a program reach it now. */
  attach(program: RunningProgram): void {
    this.#program = program
    const leftMs = Math.ceil(this.endsInMs)
    if (this.fate && leftMs <= 0) program.kill(killReason(this.fate))
    else if (this.cancelled) program.cancel(within(this.cancelled, leftMs))
    else {
      if (this.fate) program.cancel({ why: 'handover', reason: SHUTDOWN, graceMs: leftMs })
      this.#wakeEarly(program)
    }
    if (this.#committed > 0) program.confirm(this.#committed)
    if (this.#isRenewed) program.renewToken(this.offer.token)
  }

  #wakeEarly(program: RunningProgram): void {
    const news = program.news(this.#early)
    if (news.length > 0) program.wake(news)
  }

  cancel(order: CancelOrder): void {
    if (this.cancelled) return
    const now = performance.now()
    this.cancelled = within(order, Math.ceil(this.#handedOverAt - now))
    this.#controller.abort()
    this.#program?.cancel(this.cancelled)
    this.#isOrdered(now + this.cancelled.graceMs)
  }

  /** Told of each order by which it is to end: a program that is not there yet hears of none. */
  onOrder(listener: () => void): void {
    this.#onOrder = listener
  }

  /** What is left of its grace, as it was ordered. Less than zero: nothing; -Infinity: it never had any. */
  get endsInMs(): number {
    return this.#endsAt - performance.now()
  }

  #isOrdered(endsAt: number): void {
    this.#endsAt = endsAt
    this.#onOrder()
  }

  get hasProgram(): boolean {
    return this.isTakenBack || this.#program !== undefined
  }

  /** Its program may go on: it needs its lease and its token. */
  get isHeld(): boolean {
    return this.fate === undefined || (this.fate === 'shutdown' && this.hasProgram)
  }

  /** It is to come to its end within its grace, else it goes to another agent. */
  handOver(mostMs: number): void {
    if (this.fate) return
    this.fate = 'shutdown'
    this.#controller.abort()
    const graceMs = Math.min(this.offer.graceMs, mostMs)
    this.#handedOverAt = performance.now() + graceMs
    if (this.#program) this.#program.cancel({ why: 'handover', reason: SHUTDOWN, graceMs })
    else this.answer('unknown')
    // The grace of a cancel goes on.
    if (!this.cancelled) this.#isOrdered(this.#handedOverAt)
  }

  /** The first fate counts; only what was to stop by itself may be hurried. */
  end(fate: Fate): void {
    if (this.fate && this.fate !== 'shutdown') return
    this.fate = fate
    this.answer('unknown')
    this.#controller.abort()
    this.#program?.kill(killReason(fate))
    this.#isOrdered(-Infinity)
  }

  renew(token: string): void {
    this.offer.token = token
    this.tokenAt = performance.now()
    this.#isRenewed = true
    this.#program?.renewToken(token)
  }

  /** What of these its program has not had. */
  news(completions: readonly Completion[]): Completion[] {
    return this.#program ? this.#program.news(completions) : [...completions]
  }

  /** A parked program needs a slot for this. */
  wake(completions: readonly Completion[]): void {
    if (this.#program) return this.#program.wake(completions)
    for (const completion of completions) {
      if (this.#earlyChars > MOST_EARLY_CHARS) return
      this.#early.push(completion)
      this.#earlyChars += completion.result.length
    }
  }

  /** Of the process that it has at present. */
  pid(): number | undefined {
    return this.#program?.host()?.pid
  }

  evict(reason: string): void {
    this.#program?.evict(reason)
  }

  /** These entries of the program were put into the spool, the last of them at `last`. */
  reported(entries: readonly Entry[], last: number): void {
    const first = last - entries.length + 1
    for (const [index, [kind]] of entries.entries()) if (kind === 'j') this.#uncommitted.push(first + index)
  }

  /** So much of the journal of a program that was taken back was committed before. */
  restore(committed: number): void {
    this.#committed = committed
    this.#program?.confirm(committed)
  }

  /** All entries up to `seq` are committed. */
  committed(seq: number): void {
    const open = this.#uncommitted.findIndex((each) => each > seq)
    const count = open === -1 ? this.#uncommitted.length : open
    if (count === 0) return
    this.#uncommitted.splice(0, count)
    this.#committed += count
    this.#program?.confirm(this.#committed)
  }
}

/**
 * A run that is cancelled while it is handed over has what is left of that grace: whoever stops the agent counts with
 * one. So much it has in any case, as a cleanup of a few milliseconds would be none.
 */
const LEAST_CLEANUP_MS = 3_000
const MOST_EARLY_CHARS = 32 * 1024 * 1024
const SHUTDOWN = 'its agent is being stopped, and another one begins it anew'

function within(order: CancelOrder, leftMs: number): CancelOrder {
  return { ...order, graceMs: Math.min(order.graceMs, Math.max(leftMs, LEAST_CLEANUP_MS)) }
}

function killReason(fate: Fate): 'fenced' | 'shutdown' {
  return fate === 'shutdown' ? 'shutdown' : 'fenced'
}
