import type { Log } from '@windlass/shared/log.ts'
import { probe } from '@windlass/shared/probe.ts'
import { pause } from '@windlass/shared/time.ts'
import { isConnectionLoss, isDeadlock, isOfTheValues } from './client.ts'
import type { SlowCommits } from './slow-commits.ts'
import { createStubborn, type Stubborn } from './stubborn.ts'
import { createQueue, type Waiting } from './waiting.ts'

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
  /** Statements under way at once; one by default, and then items commit in the order in which they came. */
  lanes?: number
  /** Keeps the lanes beyond the first for the time in which a commit waits, for a lock say; without it all are used. */
  spare?: Spare<I>
  /** How long a lost database is waited for before the callers are told. */
  patienceMs: number
  /** Counts towards `max` in place of 1, for items of very different size. */
  weight?(item: I): number
  /** Each org has its turn in a commit, however much waits of another. Without it all items are of one. */
  orgOf?(item: I): string
  /** A commit holds items of one org: no other waits for the locks that they wait for. */
  isOrgAlone?: boolean
  /** Orgs whose commits take long commit alone, and leave a lane to the others. Needs `orgOf`. */
  slow?: SlowCommits
  /** Told of each commit and how long it took. */
  onCommit?(items: I[], ms: number): void
  /**
   * Answers for an item that fails alone and would fail again, before the items behind it are committed. Without it the
   * caller gets the error.
   */
  giveUp?(item: I, error: unknown): Promise<O>
  /** Told of an item that fails alone, is not given up, and may be added again. */
  onRefused?(item: I, error: unknown): void
  /** After how many failures, over how long, an item fails that nobody can tell why; ten in ten minutes by default. */
  stubborn?: { times: number; ms: number }
}

interface Spare<I> {
  /** A further commit begins when the last one began so long ago. */
  afterMs: number
  /** Items of one key are never in two commits at once, so they commit in the order in which they came. */
  keyOf(item: I): string
}

const FIRST_RETRY_MS = 50
const RETRY_CAP_MS = 500

function halvesOf<T>(items: readonly T[]): T[][] {
  const middle = Math.ceil(items.length / 2)
  return [items.slice(0, middle), items.slice(middle)]
}

export function groupCommit<I, O>(options: GroupCommitOptions<I, O>): GroupCommit<I, O> {
  const { name, lanes = 1, spare, slow } = options
  const stubborn = createStubborn(options.stubborn)
  const queue = createQueue<I, O>({
    ...options,
    ...(spare && { keyOf: (item: I) => spare.keyOf(item) }),
    ...(slow && { isApart: (orgId: string) => slow.isApart(orgId) }),
  })
  let underWay = 0
  /** Number of commits under way of orgs that are slow. */
  let slowUnderWay = 0
  let scheduled = false
  let begunAt = 0
  let spareTimer: NodeJS.Timeout | undefined
  const idlers: (() => void)[] = []

  /** Not at once: what else arrives in this turn of the event loop goes along. */
  function schedule() {
    if (scheduled || underWay >= lanes || queue.isEmpty()) return
    if (underWay > slowUnderWay && spare) return scheduleSpare(spare.afterMs)
    scheduled = true
    setImmediate(() => {
      scheduled = false
      void flush()
    })
  }

  function scheduleSpare(afterMs: number) {
    const sinceMs = performance.now() - begunAt
    spareTimer ??= setTimeout(() => {
      spareTimer = undefined
      if (underWay === slowUnderWay) return schedule()
      if (performance.now() - begunAt < afterMs) scheduleSpare(afterMs)
      else void flush()
    }, afterMs - sinceMs)
  }

  const isOfSlow = (items: I[]) => slow !== undefined && [...orgsOf(options, items)].some((id) => slow.isSlow(id))
  /** Orgs that are slow leave a lane to the others. */
  const mayTake = (orgId: string) => slowUnderWay < Math.max(1, lanes - 1) || !slow?.isSlow(orgId)

  async function flush() {
    if (underWay >= lanes) return
    const batch = queue.take(slow && mayTake)
    if (batch.length === 0) return
    const ofSlow = isOfSlow(batch.map(({ item }) => item)) ? 1 : 0
    begunAt = performance.now()
    underWay++
    slowUnderWay += ofSlow
    schedule()
    await settle({ ...options, suspects: stubborn }, batch)
    underWay--
    slowUnderWay -= ofSlow
    queue.release(batch)
    probe('group.committed', { name, items: batch.length })
    if (!queue.isEmpty()) schedule()
    else if (underWay === 0) for (const idler of idlers.splice(0)) idler()
  }

  return {
    add: (item) =>
      new Promise((resolve, reject) => {
        queue.add({ item, resolve, reject })
        schedule()
      }),
    idle: () =>
      new Promise((resolve) => {
        if (underWay === 0 && queue.isEmpty()) resolve()
        else idlers.push(resolve)
      }),
  }
}

function orgsOf<I, O>(options: GroupCommitOptions<I, O>, items: readonly I[]): Set<string> {
  return new Set(items.map((item) => options.orgOf?.(item) ?? ''))
}

type Settling<I, O> = GroupCommitOptions<I, O> & { suspects: Stubborn }

async function settle<I, O>(options: Settling<I, O>, batch: Waiting<I, O>[]): Promise<void> {
  try {
    const results = await commitPatiently(
      options,
      batch.map((one) => one.item),
    )
    options.suspects.committed(() => batch.map(({ item }) => keyOf(options, item)))
    batch.forEach((one, i) => one.resolve(results[i]!))
  } catch (error) {
    // One bad item must not fail its neighbours: halves are tried until it is alone, and only the guilty hears of it.
    if (batch.length === 1) await settleGuilty(options, batch[0]!, error)
    else if (isConnectionLoss(error)) for (const one of batch) one.reject(error)
    else for (const half of halvesOf(batch)) await settle(options, half)
  }
}

/** What failures of one caller have in common. Nothing: they are not counted. */
function keyOf<I, O>({ spare }: GroupCommitOptions<I, O>, item: I): string | undefined {
  return spare?.keyOf(item)
}

async function settleGuilty<I, O>(options: Settling<I, O>, one: Waiting<I, O>, error: unknown): Promise<void> {
  if (!options.giveUp || isConnectionLoss(error)) return one.reject(error)
  if (!isOfTheValues(error) && !options.suspects.failed(keyOf(options, one.item))) {
    options.onRefused?.(one.item, error)
    return one.reject(error)
  }
  try {
    one.resolve(await options.giveUp(one.item, error))
  } catch (failure) {
    one.reject(failure)
  }
}

async function commitPatiently<I, O>(options: GroupCommitOptions<I, O>, items: I[]): Promise<O[]> {
  const { name, log, patienceMs } = options
  const since = performance.now()
  for (let failures = 0; ; failures++) {
    const startedAt = performance.now()
    const end = options.slow?.begin(orgsOf(options, items))
    try {
      const results = await options.commit(items)
      end?.('committed')
      options.onCommit?.(items, performance.now() - startedAt)
      return results
    } catch (error) {
      // A database that is away says nothing of an org.
      end?.(isConnectionLoss(error) ? 'away' : 'refused')
      const isToBeTried = isConnectionLoss(error) || isDeadlock(error)
      if (!isToBeTried || performance.now() - since > patienceMs) throw error
      probe('group.retried', { name, reason: (error as Error).message })
      log.warn('db.retry', { commit: name, items: items.length, error: (error as Error).message })
      await pause(Math.min(RETRY_CAP_MS, FIRST_RETRY_MS * 2 ** failures))
    }
  }
}
