import type { Call } from './call.ts'
import type { Pending } from './pending.ts'

/**
 * The agent is being stopped, and the run goes on elsewhere. What the program does from then on may come of its being
 * told so: that is withheld, and the next attempt does it without.
 */
interface Handover {
  /** `mayKnow`: whether the program may have noticed. */
  begin(mayKnow: () => boolean): void
  /** True: the call is not begun, as the program may make it for no other reason. */
  takes(call: Call): boolean
  /** A step has failed. True: neither the journal nor the program is to hear of it. */
  hasFailed(step: Pending | undefined, result: string): boolean
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
  let hasFailure = false
  const calls: Call[] = []
  return {
    begin: (given) => void (mayKnow ??= given),
    takes(call) {
      if (!mayKnow?.()) return false
      calls.push(call)
      return true
    },
    hasFailed(step, result) {
      if (!mayKnow || !step) return false
      // Where somebody cancels the run after all, the program is given it.
      step.outcome = { state: 'failed', result }
      hasFailure = true
      return true
    },
    get isWithholding() {
      return hasFailure || calls.length > 0 || mayKnow?.() === true
    },
    get lacksFailure() {
      return hasFailure
    },
    calls,
  }
}
