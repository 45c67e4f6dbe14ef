import type { Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'
import { isConnectionLoss, isDeadlock, mayPass } from './client.ts'

/** Callers that arrive while a commit is under way share the next one. */
export interface GroupCommit<I, O> {
  /** Resolves with the item's own result once the statement that holds it is committed. */
  add(item: I): Promise<O>
  /** Resolves when nothing is waiting or under way. */
  idle(): Promise<void>
}

export interface GroupCommitOptions<I, O> {
  name: string
  log: Log
  /**
   * Writes all items in one transaction; answers in their order. It may run again for items whose commit was not heard
   * of (a lost connection), so it must change nothing the second time.
   */
  commit(items: I[]): Promise<O[]>
  /** Items in one statement at most. */
  max: number
  /** Statements under way at once. With one, items commit in the order in which they came. */
  lanes: number
  /** How long a lost database is waited for before the callers are told. */
  patienceMs: number
  /** Counts towards `max` in place of 1, for items of very different size. */
  weight?(item: I): number
  /** Told of each commit and how long it took. */
  onCommit?(items: I[], ms: number): void
  /**
   * Answers for an item that fails alone and would fail again, before the items behind it are committed. Without it the
   * caller gets the error.
   */
  giveUp?(item: I, error: unknown): Promise<O>
}

interface Waiting<I, O> {
  item: I
  resolve(result: O): void
  reject(error: unknown): void
}

const FIRST_RETRY_MS = 50
const RETRY_CAP_MS = 500

export function groupCommit<I, O>(options: GroupCommitOptions<I, O>): GroupCommit<I, O> {
  let waiting: Waiting<I, O>[] = []
  let head = 0
  let underWay = 0
  let scheduled = false
  const idlers: (() => void)[] = []

  const add = (item: I) =>
    new Promise<O>((resolve, reject) => {
      waiting.push({ item, resolve, reject })
      schedule()
    })

  /** Not at once: what else arrives in this turn of the event loop goes along. */
  function schedule() {
    if (scheduled || underWay >= options.lanes || head === waiting.length) return
    scheduled = true
    setImmediate(() => {
      scheduled = false
      void flush()
    })
  }

  async function flush() {
    const batch = take()
    if (batch.length === 0) return
    underWay++
    schedule()
    await settle(batch)
    underWay--
    if (head < waiting.length) schedule()
    else if (underWay === 0) for (const idler of idlers.splice(0)) idler()
  }

  function take(): Waiting<I, O>[] {
    let weight = 0
    let end = head
    while (end < waiting.length && (end === head || weight < options.max)) {
      weight += options.weight?.(waiting[end]!.item) ?? 1
      end++
    }
    const batch = waiting.slice(head, end)
    head = end
    if (head === waiting.length || head > 10_000) {
      waiting = waiting.slice(head)
      head = 0
    }
    return batch
  }

  async function settle(batch: Waiting<I, O>[]): Promise<void> {
    try {
      const results = await commitPatiently(batch.map((one) => one.item))
      batch.forEach((one, i) => one.resolve(results[i]!))
    } catch (error) {
      // One bad item must not fail its neighbours: each is tried alone, and only the guilty hears of it.
      if (batch.length === 1) await settleGuilty(batch[0]!, error)
      else if (isConnectionLoss(error)) for (const one of batch) one.reject(error)
      else for (const one of batch) await settle([one])
    }
  }

  async function settleGuilty(one: Waiting<I, O>, error: unknown): Promise<void> {
    if (!options.giveUp || mayPass(error)) return one.reject(error)
    try {
      one.resolve(await options.giveUp(one.item, error))
    } catch (failure) {
      one.reject(failure)
    }
  }

  async function commitPatiently(items: I[]): Promise<O[]> {
    const since = performance.now()
    for (let failures = 0; ; failures++) {
      const startedAt = performance.now()
      try {
        const results = await options.commit(items)
        options.onCommit?.(items, performance.now() - startedAt)
        return results
      } catch (error) {
        const mayPass = isConnectionLoss(error) || isDeadlock(error)
        if (!mayPass || performance.now() - since > options.patienceMs) throw error
        options.log.warn('db.retry', { commit: options.name, items: items.length, error: (error as Error).message })
        await pause(Math.min(RETRY_CAP_MS, FIRST_RETRY_MS * 2 ** failures))
      }
    }
  }

  const idle = () =>
    new Promise<void>((resolve) => {
      if (underWay === 0 && head === waiting.length) resolve()
      else idlers.push(resolve)
    })

  return { add, idle }
}
