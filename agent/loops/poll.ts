import type { Offer } from '@windlass/shared/wire/agent.ts'
import type { Rest } from '../link/rest.ts'
import type { Paces } from '../paces.ts'
import type { Slots } from '../run/slots.ts'

/** Looked at twice before a poll ends as nothing is free any more: many a run that was woken parks again at once. */
const FULL_LOOKS = 2
/** So often with more free than it asked for, and it asks anew: a run that needs several slots may wait for that. */
const MORE_LOOKS = 10
/** A poll that was asked to end is cut off after this; only a coordinator that does not hold it needs so long. */
const WITHDRAWN_MS = 3_000

interface Asked {
  free: number
  /** Cuts the poll off. */
  signal: AbortSignal
  /** No work is wanted any more. */
  closing: AbortSignal
}

/**
 * A poll that goes on with no slot free would only keep work from others; one that asked for less than is free, from
 * this agent. It is asked to end, and not cut off: an offer on its way to us would be lost until its time is over, and
 * we be blamed. `withdrawn` settles when the coordinator has heard that; a poll that began before might be ended too.
 */
export async function pollWhileRight(
  deps: { rest: Pick<Rest, 'claims'>; slots: Pick<Slots, 'free'>; config: { paces: Pick<Paces, 'pollLookMs'> } },
  { free, signal, closing }: Asked,
  waitMs: number,
): Promise<{ offers: Offer[]; withdrawn: Promise<unknown> | undefined }> {
  const cut = new AbortController()
  const answered = Promise.withResolvers<void>()
  const stop = AbortSignal.any([signal, cut.signal])
  let withdrawn: Promise<unknown> | undefined
  const withdraw = () => {
    if (withdrawn) return
    const grace = setTimeout(() => cut.abort(), WITHDRAWN_MS)
    // One that fails is made up for by the cut.
    const asked = deps.rest.claims(0, 0, stop).catch(() => undefined)
    withdrawn = Promise.all([asked, answered.promise]).finally(() => clearTimeout(grace))
  }
  let [full, more] = [0, 0]
  const timer = setInterval(() => {
    const now = deps.slots.free()
    full = now === 0 ? full + 1 : 0
    more = now > free ? more + 1 : 0
    if (full === FULL_LOOKS || more === MORE_LOOKS) withdraw()
  }, deps.config.paces.pollLookMs)
  closing.addEventListener('abort', withdraw, { once: true })
  try {
    const offers = await deps.rest.claims(free, waitMs, stop)
    return { offers, withdrawn }
  } catch (error) {
    if (signal.aborted || !cut.signal.aborted) throw error
    return { offers: [], withdrawn }
  } finally {
    clearInterval(timer)
    answered.resolve()
    closing.removeEventListener('abort', withdraw)
  }
}
