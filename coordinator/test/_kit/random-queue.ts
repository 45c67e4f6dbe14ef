/** Pools with runners that ask for work and runs that wait for it, by chance. */
import * as fc from 'fast-check'
import type { PoolId, RunId, RunnerId } from '@windlass/shared/ids.ts'
import { isSuspended } from '@windlass/shared/model/run.ts'
import type { Db } from '../../db/client.ts'
import type { ClaimCandidate } from '../../engine/store/claim.ts'
import { needsText } from '../../matching/needs.ts'
import { aPoolRow, aRunnerRow } from './queue.ts'
import { anyRun, atRest, type Owner, type RunState, writeRuns } from './random-runs.ts'

const LABELS = ['gpu', 'big']

export interface Queued {
  run: RunState
  /** Of its row in the queue: whether it says of a run what is true. */
  isAsItIs: boolean
  priority: number
  slots: number
  labels: string[]
  /** What somebody does to it while the claim is under way. */
  race: 'cancel' | 'time out' | null
}

interface Seeking {
  slots: number
  labels: string[]
  state: 'open' | 'cordoned' | 'draining' | 'revoked'
  isQuarantined: boolean
  isAble: boolean
  /** What it has free at each of the claims, and how much of that is to be filled now. */
  free: { slots: number; share: number }[]
}

export interface QueueCase {
  settings: { isolation?: 'bubblewrap' }
  runners: Seeking[]
  runs: Queued[]
}

const labels = fc.constantFrom<string[]>([], [], ['gpu'], LABELS)
const free = fc.tuple(fc.integer({ min: 1, max: 6 }), fc.integer({ min: 1, max: 6 })).map(([slots, share]) => {
  return { slots, share: Math.min(slots, share) }
})
const seeking = (claims: number): fc.Arbitrary<Seeking> =>
  fc.record({
    slots: fc.constant(8),
    labels,
    state: fc.constantFrom('open', 'open', 'open', 'open', 'cordoned', 'draining', 'revoked'),
    isQuarantined: fc.constantFrom(false, false, false, false, true),
    isAble: fc.boolean(),
    free: fc.array(free, { minLength: claims, maxLength: claims }),
  })

// Nothing has a placement that has no place: the product's own sweeper looks for that.
const stray = anyRun.map((run) => (run.place === null ? { ...run, acked: 'no placement' as const } : run))
const blocked = atRest.map((run) => ({ ...run, isBlocked: true }))
const queued = (isPlain: boolean, isRaced: boolean): fc.Arbitrary<Queued> =>
  fc.record({
    run: fc.oneof({ arbitrary: atRest, weight: 8 }, { arbitrary: stray, weight: 2 }, { arbitrary: blocked, weight: 1 }),
    isAsItIs: fc.constantFrom(...Array.from({ length: 9 }, () => true), false),
    priority: fc.constantFrom(0, 0, -5, 9),
    slots: isPlain ? fc.constant(1) : fc.constantFrom(1, 1, 2, 4, 7),
    labels: isPlain ? fc.constant([]) : labels,
    race: isRaced ? fc.constantFrom(null, null, 'cancel' as const, 'time out' as const) : fc.constant(null),
  })

/** In a group, on average. */
export const MEAN_QUEUE = 50
export const queueCases = (isPlain: boolean, isRaced: boolean): fc.Arbitrary<QueueCase> =>
  fc.noBias(
    fc.record({
      settings: fc.constantFrom({}, {}, { isolation: 'bubblewrap' as const }),
      runners: fc.array(seeking(isRaced ? 3 : 1), { minLength: 1, maxLength: 8, size: 'max' }),
      runs: fc.array(queued(isPlain, isRaced), { minLength: 1, maxLength: 2 * MEAN_QUEUE - 1, size: 'max' }),
    }),
  )

/** What is written for a case. */
export interface Pool {
  poolId: PoolId
  runners: RunnerId[]
  runs: RunId[]
}

const needsOf = ({ slots, labels }: Queued) => needsText({ slots, labels })
/** Whether the row of the queue says that the run continues. */
export const isResume = ({ run, isAsItIs }: Queued) => isSuspended(run.status) === isAsItIs

export async function aPool(
  db: Db,
  { settings, runners: candidates, runs: asks }: QueueCase,
  version: Owner['version'],
): Promise<Pool> {
  const pool = await aPoolRow(db, settings)
  const runners: RunnerId[] = []
  for (const { isAble, ...ask } of candidates)
    runners.push(await aRunnerRow(db, pool, { ...ask, capabilities: isAble ? ['bubblewrap'] : [] }))
  const quarantined = runners.filter((_, i) => candidates[i]!.isQuarantined)
  await db`
    update runner_intake
    set quarantined_until = now() + interval '1 hour'
    where runner_id = any(${quarantined}::text[])`
  const owner = { ...pool, ours: runners[0]!, other: runners.at(-1)!, version }
  const runs = await writeRuns(
    db,
    owner,
    asks.map(({ run }) => run),
  )
  const rows = asks.map((ask, i) => ({
    id: runs[i],
    priority: ask.priority,
    needs: needsOf(ask),
    resume: isResume(ask),
  }))
  await db`
    insert into run_queue (run_id, pool_id, is_resume, priority, needs)
    select id, ${pool.poolId}, resume, priority, needs
    from json_to_recordset(${JSON.stringify(rows)}::text::json)
      as t (id text, resume boolean, priority int, needs text)`
  return { poolId: pool.poolId, runners, runs }
}

export const candidatesOf = ({ runners }: QueueCase, pool: Pool, claim: number): ClaimCandidate[] =>
  runners.map(({ free }, i) => ({ runnerId: pool.runners[i]!, ...free[claim]! }))

/** What a run may be given away from. */
export function isFree({ run, ...row }: Queued): boolean {
  if (run.place !== null || run.isBlocked) return false
  return isResume({ run, ...row }) ? isSuspended(run.status) : run.status === 'queued'
}

export const mayTake = ({ settings }: QueueCase, { state, isQuarantined, isAble }: Seeking) =>
  state === 'open' && !isQuarantined && (settings.isolation === undefined || isAble)
