import type { RunnerIdentity } from '../actor.ts'
import { MOST_RUNS } from './frames.ts'

/**
 * Bounds the acceptances that are under way: each takes half a kilobyte until its commit is answered, 14 times its
 * text. Of 32 agents that accepted what nobody had offered the coordinator's memory grew to 2.5 GiB.
 */
export interface Accepting {
  /** Answers what is to be called when they are answered; undefined where they are too many. */
  enter(runner: Pick<RunnerIdentity, 'id' | 'orgId'>, runs: number): (() => void) | undefined
}

/** An agent has as many offers at once as it has slots. Of an org: 35 MB. */
const MOST = { runner: MOST_RUNS, org: 65_536 }

export function createAccepting(most = MOST): Accepting {
  const [runners, orgs] = [new Map<string, number>(), new Map<string, number>()]
  return {
    enter({ id, orgId }, runs) {
      if ((runners.get(id) ?? 0) + runs > most.runner || (orgs.get(orgId) ?? 0) + runs > most.org) return undefined
      add(runners, id, runs)
      add(orgs, orgId, runs)
      return () => {
        add(runners, id, -runs)
        add(orgs, orgId, -runs)
      }
    },
  }
}

function add(counts: Map<string, number>, key: string, more: number): void {
  const sum = (counts.get(key) ?? 0) + more
  if (sum > 0) counts.set(key, sum)
  else counts.delete(key)
}
