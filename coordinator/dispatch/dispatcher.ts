import type { OrgId, PoolId, RunId, RunnerId } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'
import { probe } from '@windlass/shared/probe.ts'
import { pause } from '@windlass/shared/time.ts'
import type { RunnerIdentity } from '../actor.ts'
import type { ClaimAnswer } from '../engine/commit/claims.ts'
import type { Claimed, ClaimCandidate } from '../engine/store/claim.ts'
import type { Round } from '../matching/rounds.ts'

interface Poll {
  runnerId: RunnerId
  slots: number
  /** A claim for it is under way. */
  isAsking: boolean
  /** Its time is over, and it only waits for that claim. */
  isLeaving: boolean
  /** Ends it, with what a claim that is under way brings. */
  leave: () => void
  answer(claimed: Claimed[]): void
}

const NOBODY: ReadonlyMap<RunId, RunnerId> = new Map()

/** Open polls of one runner. Ours has one, and another when it has given up a connection. */
const MOST_POLLS = 4

/** A poll has promised when it answers; a claim that takes longer than this is not waited for. */
const LAST_CLAIM_MS = 2000

export interface DispatcherOptions {
  log: Log
  claim(pool: Pick<Pool, 'id' | 'orgId' | 'round'>, candidates: ClaimCandidate[]): Promise<ClaimAnswer>
  /** A lost bell costs latency only: a pool with waiting polls is looked at this often all the same. */
  lookAgainMs: number
  /** Runs given out in one statement. */
  max: number
}

/** Gathers the waiting polls of each pool and claims for all of them in one statement. */
export interface Dispatchers {
  /** Waits for work. Resolves with nothing when the signal fires, or when its runner has opened some more. */
  poll(runner: Poller, slots: number, signal: AbortSignal): Promise<Claimed[]>
  /** Ends the polls of a runner, which does not want any more what they ask for. */
  withdraw(poolId: PoolId, runnerId: RunnerId): void
  /** Something has entered the queue of this pool. */
  poke(poolId: PoolId): void
  pokeAll(): void
  waiting(): number
  /** Runners of a pool that are kept for runs that need many slots, by the run; what the last look has found. */
  reservations(poolId: PoolId): ReadonlyMap<RunId, RunnerId>
  /**
   * The listener gets what a claim has given to polls that did not wait for it. Left alone it would come back when its
   * offer has run out, and its runner be blamed.
   */
  onUnclaimed(listener: (claimed: Claimed[]) => void): void
}

/** A runner that asks for work. */
type Poller = Pick<RunnerIdentity, 'id' | 'poolId' | 'orgId'>

interface Pool {
  id: PoolId
  orgId: OrgId
  polls: Set<Poll>
  /** The same, the oldest first. */
  byRunner: Map<RunnerId, Set<Poll>>
  claiming: boolean
  /** The queue may hold something that nobody has looked for yet. */
  dirty: boolean
  /** Where the next claim goes on. */
  round: Round | undefined
  timer: NodeJS.Timeout | undefined
}

function newPool(id: PoolId, orgId: OrgId): Pool {
  return {
    id,
    orgId,
    polls: new Set(),
    byRunner: new Map(),
    claiming: false,
    dirty: true,
    round: undefined,
    timer: undefined,
  }
}

export function createDispatchers(options: DispatcherOptions): Dispatchers {
  const pools = new Map<PoolId, Pool>()
  let unclaimed: (claimed: Claimed[]) => void = () => {}

  function poolOf({ poolId, orgId }: Poller): Pool {
    let pool = pools.get(poolId)
    if (!pool) pools.set(poolId, (pool = newPool(poolId, orgId)))
    return pool
  }

  function poke(poolId: PoolId) {
    const pool = pools.get(poolId)
    if (!pool) return
    pool.dirty = true
    void look(pool)
  }

  function poll(runner: Poller, slots: number, signal: AbortSignal): Promise<Claimed[]> {
    return new Promise((resolve) => {
      const pool = poolOf(runner)
      if (signal.aborted) return resolve([])
      pollOf(pool, { runnerId: runner.id, slots, signal }, resolve)
      probe('polls.waiting', { count: pool.polls.size })
      // A coordinator that starts does not know what the queue holds, nor what was put there while nobody polled.
      pool.dirty = true
      void look(pool)
    })
  }

  function withdraw(poolId: PoolId, runnerId: RunnerId) {
    for (const one of pools.get(poolId)?.byRunner.get(runnerId) ?? []) one.leave()
  }

  async function look(pool: Pool): Promise<void> {
    if (pool.claiming) return
    pool.claiming = true
    try {
      while (pool.dirty && pool.polls.size > 0) {
        pool.dirty = false
        const restMs = await claimOnce(pool, options, (claimed) => unclaimed(claimed))
        if (restMs > 0) await pause(restMs)
      }
    } catch (error) {
      // The timer below looks again; the polls go on waiting meanwhile.
      pool.dirty = true
      options.log.warn('claim.failed', { poolId: pool.id, error })
    } finally {
      pool.claiming = false
      if (pool.polls.size > 0) lookLater(pool)
    }
  }

  function lookLater(pool: Pool) {
    pool.timer ??= setTimeout(() => {
      pool.timer = undefined
      pool.dirty = true
      void look(pool)
    }, options.lookAgainMs)
    pool.timer.unref()
  }

  const waiting = () => [...pools.values()].reduce((sum, pool) => sum + pool.polls.size, 0)
  const pokeAll = () => void Array.from(pools.keys(), poke)
  const reservations = (poolId: PoolId) => pools.get(poolId)?.round?.reservations ?? NOBODY
  return {
    poll,
    withdraw,
    poke,
    pokeAll,
    waiting,
    reservations,
    onUnclaimed: (listener) => void (unclaimed = listener),
  }
}

/**
 * Claims for all polls that wait in the pool. `unclaimed` gets what came for those that have left meanwhile. Answers
 * how long the pool has to rest.
 */
async function claimOnce(
  pool: Pool,
  options: DispatcherOptions,
  unclaimed: (claimed: Claimed[]) => void,
): Promise<number> {
  const polls = fairShare([...pool.polls], options.max)
  const candidates = polls.map(({ poll: { runnerId, slots }, share }) => ({ runnerId, slots, share }))
  for (const { poll: one } of polls) one.isAsking = true
  try {
    const { claimed, isMore, restMs = 0, round } = await options.claim(pool, candidates)
    pool.round = round
    if (isMore) pool.dirty = true
    const byRunner = Map.groupBy(claimed, (run) => run.runnerId)
    for (const { poll: one } of polls) {
      const mine = byRunner.get(one.runnerId)
      if (mine && !pool.polls.has(one)) unclaimed(mine)
      else if (mine) one.answer(mine)
    }
    return restMs
  } finally {
    for (const { poll: one } of polls) {
      one.isAsking = false
      if (one.isLeaving) one.answer([])
    }
  }
}

/** Each holds a request open, and each claim looks at all of them. */
function endOldest(polls: ReadonlySet<Poll>): void {
  const open = [...polls].filter(({ isLeaving }) => !isLeaving)
  for (const one of open.slice(0, -MOST_POLLS)) one.leave()
}

function pollOf(
  { polls, byRunner }: Pool,
  { runnerId, slots, signal }: { runnerId: RunnerId; slots: number; signal: AbortSignal },
  resolve: (claimed: Claimed[]) => void,
): void {
  let timer: NodeJS.Timeout | undefined
  const one: Poll = {
    runnerId,
    slots,
    isAsking: false,
    isLeaving: false,
    leave: () => {
      if (!one.isAsking) return one.answer([])
      one.isLeaving = true
      timer ??= setTimeout(() => one.answer([]), LAST_CLAIM_MS)
    },
    answer(claimed) {
      clearTimeout(timer)
      polls.delete(one)
      mine.delete(one)
      if (mine.size === 0 && byRunner.get(runnerId) === mine) byRunner.delete(runnerId)
      probe('polls.waiting', { count: polls.size })
      signal.removeEventListener('abort', one.leave)
      resolve(claimed)
    },
  }
  const mine = byRunner.get(runnerId) ?? new Set()
  byRunner.set(runnerId, mine.add(one))
  polls.add(one)
  endOldest(mine)
  signal.addEventListener('abort', one.leave, { once: true })
}

/**
 * One poll a runner, and about `max` runs in one statement. Where there are more polls than that, labels may pick any
 * of them.
 */
function fairShare(polls: Poll[], max: number): { poll: Poll; share: number }[] {
  const newest = [...new Map(polls.map((poll) => [poll.runnerId, poll])).values()]
  const each = Math.max(1, Math.floor(max / newest.length))
  return newest.map((poll) => ({ poll, share: Math.min(poll.slots, each) }))
}
