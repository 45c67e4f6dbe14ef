import type { Log } from '@windlass/shared/log.ts'
import { probe } from '@windlass/shared/probe.ts'
import { pause } from '@windlass/shared/time.ts'
import { isConnectionLoss, isDeadlock, isOfOthers, isOfTheValues } from './client.ts'
import { createNumbers, halve, halvesOf, type Kinship, type Part, partOf } from './parts.ts'
import type { SlowCommits } from './slow-commits.ts'
import { createStubborn, type Stubborn } from './stubborn.ts'
import { createTurns } from '../turns.ts'
import { createQueue, type Queue, type Wait, type Waiting } from './waiting.ts'

/** Callers that arrive while a commit is under way share the next one. */
export interface GroupCommit<I, O> {
  /** Resolves with the item's own result once the statement that holds it is committed. See `Wait`. */
  add(item: I, wait?: Wait): Promise<O>
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

export function groupCommit<I, O>(options: GroupCommitOptions<I, O>): GroupCommit<I, O> {
  return new Committer(options)
}

class Committer<I, O> implements GroupCommit<I, O> {
  readonly #options: Settling<I, O>
  readonly #lanes: number
  readonly #queue: Queue<I, O>
  /**
   * Of commits that failed. One is tried at a time, in a lane of its own: what comes anew waits for none of it. Orgs
   * take turns.
   */
  readonly #parts = createTurns<Part<Waiting<I, O>>>()
  readonly #kinship: Kinship<Waiting<I, O>>
  readonly #idlers: (() => void)[] = []
  #isTrying = false
  #underWay = 0
  /** Number of commits under way of orgs that are slow, and of parts. */
  #slowUnderWay = 0
  #isScheduled = false
  #begunAt = 0
  #hasSpareTimer = false

  constructor(options: GroupCommitOptions<I, O>) {
    const { lanes = 1, spare, slow } = options
    this.#options = { ...options, suspects: createStubborn(options.stubborn) }
    this.#lanes = lanes
    this.#queue = createQueue<I, O>({
      ...options,
      ...(spare && { keyOf: (item: I) => spare.keyOf(item) }),
      // What is parted of an org was refused: another commit of it may be, and those of others with it.
      ...(slow && { isApart: (orgId: string) => slow.isApart(orgId) || this.#parts.waiting(orgId) > 0 }),
    })
    this.#kinship = {
      orgOf: ({ item }) => options.orgOf?.(item) ?? '',
      // Without keys nothing has an order, unless there is one lane.
      keyOf: spare ? ({ item }) => spare.keyOf(item) : createNumbers(),
    }
  }

  add(item: I, wait?: Wait): Promise<O> {
    return new Promise((resolve, reject) => {
      const one: Waiting<I, O> = { item, resolve, reject }
      this.#queue.add(one)
      if (wait) one.begin = wait((error) => this.#queue.remove(one) && reject(error))
      this.#schedule()
    })
  }

  idle(): Promise<void> {
    return new Promise((resolve) => {
      if (this.#isIdle()) resolve()
      else this.#idlers.push(resolve)
    })
  }

  #isIdle(): boolean {
    return this.#underWay === 0 && this.#queue.isEmpty() && this.#parts.isEmpty()
  }

  #hasPart(): boolean {
    return !this.#isTrying && !this.#parts.isEmpty()
  }

  /** Not at once: what else arrives in this turn of the event loop goes along. */
  #schedule(): void {
    const hasWork = !this.#queue.isEmpty() || this.#hasPart()
    if (this.#isScheduled || this.#underWay >= this.#lanes || !hasWork) return
    const { spare } = this.#options
    if (this.#underWay > this.#slowUnderWay && spare) return this.#scheduleSpare(spare.afterMs)
    this.#isScheduled = true
    setImmediate(() => {
      this.#isScheduled = false
      void this.#flush()
    })
  }

  #scheduleSpare(afterMs: number): void {
    if (this.#hasSpareTimer) return
    this.#hasSpareTimer = true
    const sinceMs = performance.now() - this.#begunAt
    setTimeout(() => {
      this.#hasSpareTimer = false
      if (this.#underWay === this.#slowUnderWay) return this.#schedule()
      if (performance.now() - this.#begunAt < afterMs) this.#scheduleSpare(afterMs)
      else void this.#flush()
    }, afterMs - sinceMs)
  }

  async #flush(): Promise<void> {
    if (this.#underWay >= this.#lanes) return
    if (this.#hasPart()) return this.#tryPart(this.#parts.take(() => true)!)
    const batch = this.#queue.take(this.#options.slow && ((orgId) => this.#mayTake(orgId)))
    // All that waited may have been taken out.
    if (batch.length === 0) return this.#tellIdlers()
    const ofSlow = this.#isOfSlow(batch.map(({ item }) => item)) ? 1 : 0
    this.#begunAt = performance.now()
    this.#begin(ofSlow)
    const isSettled = await (this.#lanes === 1 ? settleInOrder : settle)(this.#options, batch)
    if (isSettled) this.#release(batch)
    else this.#part(partOf(batch))
    this.#end(ofSlow)
  }

  async #tryPart(part: Part<Waiting<I, O>>): Promise<void> {
    this.#isTrying = true
    this.#begin(1)
    const isSettled = await settle(this.#options, part.tries[0]!)
    this.#isTrying = false
    if (isSettled) part.tries.shift()
    if (!isSettled) this.#part(part)
    else if (part.tries.length > 0) this.#wait(part)
    else this.#release(part.items)
    this.#end(1)
  }

  #part(failed: Part<Waiting<I, O>>): void {
    for (const part of halve(failed, this.#kinship)) this.#wait(part)
  }

  /** What is of several orgs has a turn of its own. */
  #wait(part: Part<Waiting<I, O>>): void {
    const [orgId, other] = orgsOf(
      this.#options,
      part.items.map(({ item }) => item),
    )
    this.#parts.add(other === undefined ? orgId! : '', part)
  }

  #isOfSlow(items: I[]): boolean {
    const { slow } = this.#options
    return slow !== undefined && [...orgsOf(this.#options, items)].some((id) => slow.isSlow(id))
  }

  /** Orgs that are slow leave a lane to the others. */
  #mayTake(orgId: string): boolean {
    return this.#slowUnderWay < Math.max(1, this.#lanes - 1) || !this.#options.slow?.isSlow(orgId)
  }

  #begin(ofSlow: number): void {
    this.#underWay++
    this.#slowUnderWay += ofSlow
    this.#schedule()
  }

  #end(ofSlow: number): void {
    this.#underWay--
    this.#slowUnderWay -= ofSlow
    this.#tellIdlers()
    this.#schedule()
  }

  #tellIdlers(): void {
    if (this.#isIdle()) for (const idler of this.#idlers.splice(0)) idler()
  }

  #release(items: readonly Waiting<I, O>[]): void {
    this.#queue.release(items)
    probe('group.committed', { name: this.#options.name, items: items.length })
  }
}

function orgsOf<I, O>(options: GroupCommitOptions<I, O>, items: readonly I[]): Set<string> {
  return new Set(items.map((item) => options.orgOf?.(item) ?? ''))
}

type Settling<I, O> = GroupCommitOptions<I, O> & { suspects: Stubborn }

/** One bad item must not fail its neighbours: halves are tried until it is alone, and only the guilty hears of it. */
async function settleInOrder<I, O>(options: Settling<I, O>, batch: Waiting<I, O>[]): Promise<boolean> {
  if (!(await settle(options, batch))) for (const half of halvesOf(batch)) await settleInOrder(options, half)
  return true
}

/** Returns false when they failed together: then they have no answer yet. */
async function settle<I, O>(options: Settling<I, O>, batch: Waiting<I, O>[]): Promise<boolean> {
  try {
    const results = await commitPatiently(
      options,
      batch.map((one) => one.item),
    )
    options.suspects.committed(() => batch.map(({ item }) => keyOf(options, item)))
    batch.forEach((one, i) => one.resolve(results[i]!))
  } catch (error) {
    if (batch.length === 1) await settleGuilty(options, batch[0]!, error)
    else if (isConnectionLoss(error)) for (const one of batch) one.reject(error)
    else return false
  }
  return true
}

/** What failures of one caller have in common. Nothing: they are not counted. */
function keyOf<I, O>({ spare }: GroupCommitOptions<I, O>, item: I): string | undefined {
  return spare?.keyOf(item)
}

async function settleGuilty<I, O>(options: Settling<I, O>, one: Waiting<I, O>, error: unknown): Promise<void> {
  if (!options.giveUp || isConnectionLoss(error)) return one.reject(error)
  if (!isOfTheValues(error) && (isOfOthers(error) || !options.suspects.failed(keyOf(options, one.item)))) {
    options.onRefused?.(one.item, error)
    return one.reject(error)
  }
  try {
    one.resolve(await options.giveUp(one.item, error))
  } catch (failure) {
    options.onRefused?.(one.item, error)
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
