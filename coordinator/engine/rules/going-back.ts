import type { Ending } from '@windlass/shared/model/ending.ts'
import { whatIsLost } from '@windlass/shared/model/lost-reasons.ts'
import { worded } from './outcome.ts'
import type { Moving } from './run.ts'

/**
 * Returns whether a run that ends like this may be given out again at once, however often: nothing counts that as a
 * crash. One that is parked goes on when something is there for it. That may be there already where it was led back,
 * did not go on and was given up again.
 */
export function goesBackAtOnce(
  { place, isLedBack, suspended }: Pick<Moving, 'place' | 'isLedBack' | 'suspended'>,
  ending: Ending,
  isOffered: boolean,
): boolean {
  if (place === 'parked') return isLedBack && !suspended && ENDS_A_WAIT.has(ending.how)
  if (ending.how !== 'lost' && ending.how !== 'unready') return false
  const what = whatIsLost(worded(ending.reason))
  return ending.how === 'unready' ? what !== 'program' : isOffered || what === 'operator'
}

/** Ends of processes after which a run waits on without one. */
const ENDS_A_WAIT = new Set<Ending['how']>(['killed', 'cancelled', 'lost', 'unready', 'evicted'])
