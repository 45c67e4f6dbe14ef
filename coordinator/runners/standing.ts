import { Fault } from '@windlass/shared/errors.ts'
import type { ProgramIdentity } from '../actor.ts'
import type { Db } from '../db/client.ts'
import type { Deps } from '../deps.ts'
import { isRevoked } from './store-intake.ts'

/** Which runners were revoked, kept for a moment: every word of a program asks. */
export interface Standings {
  isRevoked(runnerId: string): Promise<boolean>
  forget(runnerId: string): void
}

/** Less than the 5 s after which nothing of a revoked runner is served by any coordinator. */
const FRESH_MS = 3000
const KEPT = 5000

export function createStandings(db: Db): Standings {
  const kept = new Map<string, { at: number; found: Promise<boolean> }>()
  return {
    isRevoked(runnerId) {
      const known = kept.get(runnerId)
      if (known && performance.now() - known.at < FRESH_MS) return known.found
      const found = isRevoked(db, runnerId)
      if (kept.size >= KEPT) kept.clear()
      kept.set(runnerId, { at: performance.now(), found })
      found.catch(() => kept.get(runnerId)?.found === found && kept.delete(runnerId))
      return found
    },
    forget: (runnerId) => void kept.delete(runnerId),
  }
}

/** The token of a run dies with its runner, whether or not the run has been taken from there yet. */
export async function assertServed(
  deps: Pick<Deps, 'standings'>,
  { runnerId }: Pick<ProgramIdentity, 'runnerId'>,
): Promise<void> {
  if (!(await deps.standings.isRevoked(runnerId))) return
  throw new Fault('UNAUTHENTICATED', {}, 'The runner of this run was revoked, and the tokens of its runs with it.')
}
