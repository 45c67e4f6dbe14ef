import type { Call, Scope } from './call.ts'
import type { Pending } from './pending.ts'
import type { Outcome } from './step.ts'

/**
 * The agent is being stopped, and the run goes on elsewhere. What the program does from then on may come of its being
 * told so: that is withheld, and the next attempt does it without.
 */
interface Handover {
  /** `mayKnow`: whether the program may have noticed. */
  begin(mayKnow: () => boolean): void
  /**
   * True: the call is not begun. The program may make it for no other reason, or because it was not told of a failure:
   * the next attempt may take another way.
   */
  takes(call: Call): boolean
  /** A step has come to this. True: neither the journal nor the program is to hear of it. */
  withholds(step: Pending, scope: Scope, outcome: Outcome): boolean
  /** What this one has come to is withheld. */
  hasWithheld(step: Call): boolean
  /**
   * The program waits for something that does not come any more, or may have ended what it did beside its waits: a
   * replay would begin that again, and not come to where it stands.
   */
  readonly isWithholding: boolean
  /** The program was not told of a step that has failed. */
  readonly lacksFailure: boolean
  /** Those that were not begun, in their order. */
  readonly calls: readonly Call[]
}

export function createHandover(): Handover {
  let mayKnow: (() => boolean) | undefined
  const calls: Call[] = []
  const withheld = new Set<Call>()
  /** Steps that were not told of a failure inside of them. */
  const lacking = new Set<Scope>()

  function lacksFailure(scope: Scope | undefined): boolean {
    return scope ? lacking.has(scope) : withheld.size > 0
  }

  return {
    begin: (given) => void (mayKnow ??= given),
    takes(call) {
      if (!mayKnow?.() && !lacksFailure(call.within)) return false
      calls.push(call)
      return true
    },
    withholds(step, scope, outcome) {
      // Had it been told of a failure inside of it, it might have come to something else.
      if (!mayKnow || (outcome.state === 'done' && !lacksFailure(scope))) return false
      // Where somebody cancels the run after all, the program is given it.
      step.outcome = outcome
      withheld.add(step.call)
      // What a step had come to before that stays.
      let around = step.call.within
      for (; around && !around.hasReturned; around = around.call.within) lacking.add(around)
      return true
    },
    hasWithheld: (step) => withheld.has(step),
    get isWithholding() {
      return withheld.size > 0 || calls.length > 0 || mayKnow?.() === true
    },
    get lacksFailure() {
      return withheld.size > 0
    },
    calls,
  }
}
