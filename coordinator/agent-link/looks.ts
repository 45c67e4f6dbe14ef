import type { Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'
import type { Db } from '../db/client.ts'
import { tellWakes } from '../dispatch/wakes.ts'
import { tellCancels } from '../engine/commit/leases.ts'
import { createSeats } from '../limits/seats.ts'
import { createSlowOrgs } from '../limits/slow-orgs.ts'
import { tellIntake } from '../runners/intake.ts'
import type { TermsReader } from '../workflows/terms.ts'
import type { Sockets } from './sockets.ts'

export type LookDeps = { db: Db; log: Log; versionTerms: TermsReader; sockets: Sockets }

/** Runners of an org that are looked for together, by two statements and one for each. */
const AT_ONCE = 50

/**
 * Looks for what these runners have not been told, and tells it to those that are connected here. One look of an org is
 * under way; who is named meanwhile waits for the next one, once, so that nothing is missed that was written before.
 * Where each call looked at once, 900 agents that were named 20 times a second kept triggers waiting for seconds.
 * `most`: looks at once of all orgs.
 */
export function createLooks(deps: LookDeps, most: number): (runnerIds: readonly string[]) => void {
  const { sockets } = deps
  /** By org, from its first look to its last. */
  const waiting = new Map<string, Set<string>>()
  const seats = createSeats({ org: 1, all: most }, createSlowOrgs())

  async function lookFor(orgId: string, runnerIds: Set<string>): Promise<void> {
    while (runnerIds.size > 0) {
      const leave = await seats.take(orgId)
      const since = performance.now()
      await look(deps, takeFrom(runnerIds)).finally(leave)
      // Half of the time belongs to others.
      await pause(performance.now() - since)
    }
    waiting.delete(orgId)
  }

  function add(orgId: string, runnerId: string): void {
    const others = waiting.get(orgId)
    if (others) return void others.add(runnerId)
    const first = new Set([runnerId])
    waiting.set(orgId, first)
    void lookFor(orgId, first)
  }

  return (runnerIds) => {
    for (const id of runnerIds) {
      const orgId = sockets.orgOf(id)
      if (orgId !== undefined) add(orgId, id)
    }
  }
}

function takeFrom(runnerIds: Set<string>): string[] {
  const taken = [...runnerIds].slice(0, AT_ONCE)
  for (const id of taken) runnerIds.delete(id)
  return taken
}

/** Never rejects: what cannot be looked up an agent hears with its next heartbeat. */
async function look(deps: LookDeps, runnerIds: readonly string[]): Promise<void> {
  // They may have gone while others had their turns.
  const here = runnerIds.filter((id) => deps.sockets.orgOf(id) !== undefined)
  if (here.length === 0) return
  const failed = (error: unknown) => deps.log.warn('orders.failed', { error })
  const wakes = Promise.all(here.map((id) => tellWakes(deps, id))).catch(failed)
  await tellCancels(deps, here).catch(failed)
  await tellIntake(deps, here).catch(failed)
  await wakes
}
