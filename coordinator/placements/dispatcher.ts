import type { PoolId, RunnerId } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'
import type { Claimed } from './store.ts'

interface Poll {
  runnerId: RunnerId
  slots: number
  answer(claimed: Claimed[]): void
}

export interface DispatcherOptions {
  log: Log
  claim(poolId: PoolId, takers: RunnerId[]): Promise<Claimed[]>
  /** A lost bell costs latency only: a pool with waiting polls is looked at this often all the same. */
  lookAgainMs: number
  /** Runs given out in one statement. */
  max: number
}

/** Gathers the waiting polls of each pool and claims for all of them in one statement. */
export interface Dispatchers {
  /** Waits for work. Resolves with nothing when the signal fires. */
  poll(poolId: PoolId, runnerId: RunnerId, slots: number, signal: AbortSignal): Promise<Claimed[]>
  /** Something has entered the queue of this pool. */
  poke(poolId: PoolId): void
  pokeAll(): void
  waiting(): number
}

interface Pool {
  id: PoolId
  polls: Set<Poll>
  claiming: boolean
  /** The queue may hold something that nobody has looked for yet. */
  dirty: boolean
  timer: NodeJS.Timeout | undefined
}

export function createDispatchers(options: DispatcherOptions): Dispatchers {
  const pools = new Map<PoolId, Pool>()

  function poolOf(id: PoolId): Pool {
    let pool = pools.get(id)
    if (!pool) pools.set(id, (pool = { id, polls: new Set(), claiming: false, dirty: true, timer: undefined }))
    return pool
  }

  function poke(poolId: PoolId) {
    const pool = pools.get(poolId)
    if (!pool) return
    pool.dirty = true
    void look(pool)
  }

  function poll(poolId: PoolId, runnerId: RunnerId, slots: number, signal: AbortSignal): Promise<Claimed[]> {
    return new Promise((resolve) => {
      const pool = poolOf(poolId)
      const leave = () => one.answer([])
      const one: Poll = {
        runnerId,
        slots,
        answer(claimed) {
          pool.polls.delete(one)
          signal.removeEventListener('abort', leave)
          resolve(claimed)
        },
      }
      if (signal.aborted) return resolve([])
      signal.addEventListener('abort', leave, { once: true })
      pool.polls.add(one)
      // A coordinator that starts does not know what the queue holds, nor what was put there while nobody polled.
      pool.dirty = true
      void look(pool)
    })
  }

  async function look(pool: Pool): Promise<void> {
    if (pool.claiming) return
    pool.claiming = true
    try {
      while (pool.dirty && pool.polls.size > 0) {
        pool.dirty = false
        await claimOnce(pool)
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

  async function claimOnce(pool: Pool): Promise<void> {
    const polls = fairShare([...pool.polls], options.max)
    const takers = polls.flatMap(({ poll: one, share }) => Array<RunnerId>(share).fill(one.runnerId))
    const claimed = await options.claim(pool.id, interleave(takers))
    if (claimed.length === takers.length) pool.dirty = true
    const byRunner = Map.groupBy(claimed, (run) => run.runnerId)
    for (const { poll: one } of polls) {
      const mine = byRunner.get(one.runnerId)
      if (!mine) continue
      byRunner.delete(one.runnerId)
      // Whoever has left in the meantime does not hear of it: the offer runs out and the run is queued again.
      one.answer(mine)
    }
  }

  const waiting = () => [...pools.values()].reduce((sum, pool) => sum + pool.polls.size, 0)
  const pokeAll = () => {
    for (const id of pools.keys()) poke(id)
  }
  return { poll, poke, pokeAll, waiting }
}

/** One poll a runner, and never more than `max` runs in one statement. */
function fairShare(polls: Poll[], max: number): { poll: Poll; share: number }[] {
  const newest = [...new Map(polls.map((poll) => [poll.runnerId, poll])).values()]
  const each = Math.max(1, Math.floor(max / newest.length))
  return newest.slice(0, max).map((poll) => ({ poll, share: Math.min(poll.slots, each) }))
}

/** A, B, A, B … so that few runs are spread over many runners. */
function interleave(takers: RunnerId[]): RunnerId[] {
  const queues = [...Map.groupBy(takers, (runner) => runner).values()]
  const mixed: RunnerId[] = []
  for (let round = 0; mixed.length < takers.length; round++) {
    for (const queue of queues) if (round < queue.length) mixed.push(queue[round]!)
  }
  return mixed
}
