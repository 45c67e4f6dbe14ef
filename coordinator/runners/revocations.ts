import { Fault } from '@windlass/shared/errors.ts'
import type { ProgramIdentity } from '../actor.ts'
import type { Db } from '../db/client.ts'
import { createFreshCache, type FreshCache } from '../db/fresh-cache.ts'
import { isRevoked } from './store-intake.ts'

/** Which runners were revoked: every word of a program asks. */
export type Revocations = FreshCache<string, 'served' | 'revoked'>

/** Less than the 5 s after which nothing of a revoked runner is served by any coordinator. */
const FRESH_MS = 3000
const MOST_REVOCATIONS = 5000

export function createRevocations(db: Db): Revocations {
  const read = async (runnerId: string) => ((await isRevoked(db, runnerId)) ? 'revoked' : 'served')
  return createFreshCache({ read, freshMs: FRESH_MS, most: MOST_REVOCATIONS })
}

/** The token of a run dies with its runner, whether or not the run has been taken from there yet. */
export async function assertServed(
  deps: { revocations: Revocations },
  { runnerId }: Pick<ProgramIdentity, 'runnerId'>,
): Promise<void> {
  if ((await deps.revocations.of(runnerId)) === 'served') return
  throw new Fault('UNAUTHENTICATED', {}, 'The runner of this run was revoked, and the tokens of its runs with it.')
}
