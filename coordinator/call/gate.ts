import { Fault } from '@windlass/shared/errors.ts'
import type { Log } from '@windlass/shared/log.ts'
import { createSample } from '../limits/sample.ts'
import type { Strangers } from '../limits/strangers.ts'

/** One credential, and who shows it. */
interface Shown {
  /** What it was shown for: a kind of caller, or `registration`. */
  as: string
  address: string
  requestId: string
  /** Whether it served not long ago: then its look-up is no guess. */
  isKnown: () => boolean
}

export interface Gate {
  /** Looks a credential up, or throws RATE_LIMITED. Refused ones count for their address, and are logged. */
  pass<T>(shown: Shown, find: () => Promise<T> | T): Promise<T>
}

export function createGate({ log, strangers }: { log: Log; strangers: Strangers }): Gate {
  const sample = createSample()

  /** The sentences of our faults hold no credential. */
  function note({ as, address, requestId }: Shown, { code, message }: Fault): void {
    const facts = sample('credential.refused')
    if (facts) log.warn('credential.refused', { as, address, requestId, code, message, ...facts })
  }

  return {
    async pass(shown, find) {
      const isFree = strangers.isFull(shown.address) && shown.isKnown()
      const { refusal, settle } = isFree ? UNCOUNTED : await strangers.attempt(shown.address)
      if (refusal) {
        note(shown, refusal)
        throw refusal
      }
      let wasRefused = false
      try {
        return await find()
      } catch (error) {
        if (isRefused(error)) {
          wasRefused = true
          note(shown, error)
        }
        throw error
      } finally {
        settle(wasRefused)
      }
    },
  }
}

/** One that served not long ago neither waits for strangers of its address, nor is it refused for them. */
const UNCOUNTED = { refusal: undefined, settle: () => {} }

function isRefused(error: unknown): error is Fault {
  return error instanceof Fault && (error.code === 'UNAUTHENTICATED' || error.code === 'REGISTRATION_TOKEN_USED')
}
