/** What runs out is aged, in place of waiting for it with short settings: a busy machine loses nothing by itself. */
import type { Db } from '../../db/client.ts'
import type { Settings, TestCoordinator } from './coordinator-types.ts'

/** Sweeps look often, and there is no amnesty: what a test makes old is taken back at once, and nothing else is. */
export const SWEEPING: Settings = { SWEEP_MS: 50, AMNESTY_MS: 0, OFFER_MS: 60_000 }

/** Nobody has taken these runs in time. */
export async function ageOffers({ db }: { db: Db }, ...runs: string[]): Promise<void> {
  await db`update placements set offered_at = now() - interval '1 hour' where run_id = any(${runs})`
}

/** Their agents were silent for longer than a lease. */
export async function ageLeases({ db }: { db: Db }, ...runs: string[]): Promise<void> {
  await db`update placements set lease_expires_at = now() where run_id = any(${runs})`
}

/** Whatever these runs wait for comes due now. */
export async function ageTimers({ db, deps }: Pick<TestCoordinator, 'db' | 'deps'>, ...runs: string[]): Promise<void> {
  await db`update timers set due_at = now() where run_id = any(${runs})`
  deps.timers.expect(0)
}

/** Their agents are heard for a minute, and had said hello before: what is due of these runs is not put off. */
export async function hear({ db }: { db: Db }, ...runs: string[]): Promise<void> {
  await db`
    update runners
    set last_heartbeat_at = now() + interval '1 minute', connected_at = null
    where id in (select runner_id from placements where run_id = any(${runs}))`
}

/** What holds these runs out of the queue is over. */
export async function ageDelays({ db, deps }: Pick<TestCoordinator, 'db' | 'deps'>, ...runs: string[]): Promise<void> {
  await db`update timers set due_at = now() where run_id = any(${runs}) and kind = 'enqueue'`
  deps.timers.expect(0)
}
