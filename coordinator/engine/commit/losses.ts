import type { Db } from '../../db/client.ts'
import type { RunnerIdentity } from '../../actor.ts'
import * as store from '../store/placement-losses.ts'

/** What is the same about an agent as when it was heard of last. */
export interface Return {
  /** It is the same start of it: it was there all the time, and could not reach us. */
  sameInstance: boolean
  /** Its machine was not started anew since. */
  sameBoot: boolean
}

/** The runner is heard of again: what its runs were lost by, which nobody could tell when their leases ran out. */
export async function explainLosses(deps: { db: Db }, runner: Pick<RunnerIdentity, 'id'>, back: Return): Promise<void> {
  await store.explainUnknown(deps.db, runner.id, whatWasLost(back))
}

/** For runs that an agent does not know any more when it is back, as well. */
export function whatWasLost({ sameInstance, sameBoot }: Return): 'network' | 'daemon' | 'host' {
  // No start outlives the boot of its machine: one that was never welcomed goes on under its name after the next boot.
  if (!sameBoot) return 'host'
  return sameInstance ? 'network' : 'daemon'
}
