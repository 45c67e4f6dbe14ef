import type { CancelOrder, Offer } from '@windlass/shared/wire/agent.ts'
import type { RunningProgram } from './run-program.ts'

/** Why this agent itself ends a program: another has the run, the lease ran out, or the agent stops. */
export type Fate = 'stale' | 'fenced' | 'shutdown'

/** What the coordinator said to our `accept`; `unknown` when it did not say anything in time. */
export type Verdict = 'ours' | 'refused' | 'unknown'

/** A run on this agent, from its offer until its program is gone. Orders may come at any moment of it. */
export class Live {
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
  cancelled: CancelOrder | undefined
  fate: Fate | undefined
  #answer: (verdict: Verdict) => void = () => {}
  #program: RunningProgram | undefined
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
    if (this.fate) program.kill(killReason(this.fate))
    else if (this.cancelled) program.cancel(this.cancelled.reason, this.cancelled.graceMs)
  }

  cancel(order: CancelOrder): void {
    if (this.cancelled) return
    this.cancelled = order
    this.#controller.abort()
    this.#program?.cancel(order.reason, order.graceMs)
  }

  /** The first fate counts. */
  end(fate: Fate): void {
    if (this.fate) return
    this.fate = fate
    this.answer('unknown')
    this.#controller.abort()
    this.#program?.kill(killReason(fate))
  }

  renew(token: string): void {
    this.offer.token = token
    this.tokenAt = performance.now()
    this.#program?.renewToken(token)
  }
}

function killReason(fate: Fate): 'fenced' | 'shutdown' {
  return fate === 'shutdown' ? 'shutdown' : 'fenced'
}
