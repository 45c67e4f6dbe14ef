import { createFifo, type Fifo } from './fifo.ts'

/** An item of a group commit, with those who wait for its result. */
export interface Waiting<I, O> {
  item: I
  resolve(result: O): void
  reject(error: unknown): void
  /** Called when its commit begins. */
  begin?: () => void
}

/**
 * Called where an item waits for its commit, with what takes it out again and rejects. What it answers is called when
 * the commit begins: nothing takes it out from then on, also where it fails and a part of it is tried again.
 */
export type Wait = (giveUp: (error: Error) => void) => () => void

export interface QueueOptions<I> {
  max: number
  weight?: ((item: I) => number) | undefined
  keyOf?: (item: I) => string
  orgOf?: ((item: I) => string) | undefined
  /** A batch holds items of one org: no other waits for what they wait for. */
  isOrgAlone?: boolean | undefined
  /** The same for these orgs only. */
  isApart?: ((orgId: string) => boolean) | undefined
}

/** What waits for its commit. Orgs take turns; items of one org and key keep the order in which they came. */
export interface Queue<I, O> {
  add(one: Waiting<I, O>): void
  /** Its cost is the number of those that came later. False: it does not wait any more. */
  remove(one: Waiting<I, O>): boolean
  isEmpty(): boolean
  /**
   * The next batch. Its keys are busy until `release`; what has a busy key stays where it is. So does what is of an org
   * that must not: the others pass it, and it keeps its turn.
   */
  take(mayTake?: (orgId: string) => boolean): Waiting<I, O>[]
  release(batch: readonly Waiting<I, O>[]): void
}

/** The items of one key, and of one org. */
interface List<I, O> {
  org: Org<I, O>
  key: string
  items: Fifo<Waiting<I, O>>
}

interface Org<I, O> {
  id: string
  /** All that wait, by key. */
  lists: Map<string, List<I, O>>
  /** Those whose key is not known to be busy, in the order of their turns. */
  ready: Set<List<I, O>>
  /** Weight that it may take in its turn. Below 0 it has taken more, and passes. */
  credit: number
}

/** An org takes a sixteenth of a batch in its turn. */
const TURNS = 16

export function createQueue<I, O>(options: QueueOptions<I>): Queue<I, O> {
  return new OrgQueues(options)
}

class OrgQueues<I, O> implements Queue<I, O> {
  readonly #max: number
  readonly #weight: (item: I) => number
  readonly #keyOf: ((item: I) => string) | undefined
  readonly #orgOf: (item: I) => string
  readonly #isAlone: (orgId: string) => boolean
  readonly #orgs = new Map<string, Org<I, O>>()
  /** Those with something ready, in the order of their turns. */
  #turns = new Set<Org<I, O>>()
  readonly #busy = new Set<string>()
  /** Found with a busy key; each is looked at again when its key is released, and not before. */
  readonly #blocked = new Map<string, List<I, O>[]>()
  #count = 0

  constructor({ max, weight = () => 1, keyOf, orgOf = () => '', isOrgAlone = false, isApart }: QueueOptions<I>) {
    this.#max = max
    this.#weight = weight
    this.#keyOf = keyOf
    this.#orgOf = orgOf
    this.#isAlone = (orgId) => isOrgAlone || isApart?.(orgId) === true
  }

  add(one: Waiting<I, O>): void {
    const org = this.#orgFor(this.#orgOf(one.item))
    const key = this.#keyOf?.(one.item) ?? ''
    let list = org.lists.get(key)
    if (!list) {
      org.lists.set(key, (list = { org, key, items: createFifo() }))
      this.#makeReady(list)
    }
    list.items.push(one)
    this.#count++
  }

  /** A list that is empty then goes when its turn comes: it may stand among the blocked ones. */
  remove(one: Waiting<I, O>): boolean {
    const list = this.#orgs.get(this.#orgOf(one.item))?.lists.get(this.#keyOf?.(one.item) ?? '')
    if (!list?.items.remove(one)) return false
    this.#count--
    return true
  }

  isEmpty(): boolean {
    return this.#count === 0
  }

  take(mayTake: (orgId: string) => boolean = () => true): Waiting<I, O>[] {
    const batch: Waiting<I, O>[] = []
    const passed: Org<I, O>[] = []
    let sum = 0
    for (let [org] = this.#turns; org && sum < this.#max; [org] = this.#turns) {
      this.#turns.delete(org)
      const isAlone = this.#isAlone(org.id)
      if (!mayTake(org.id) || (isAlone && batch.length > 0)) {
        passed.push(org)
        continue
      }
      sum += this.#takeTurn(org, { room: this.#max - sum, share: isAlone ? this.#max : this.#max / TURNS }, batch)
      if (org.ready.size > 0) this.#turns.add(org)
      else if (org.lists.size === 0) this.#orgs.delete(org.id)
      if (isAlone && batch.length > 0) break
    }
    if (passed.length > 0) this.#turns = new Set([...passed, ...this.#turns])
    this.#count -= batch.length
    if (this.#keyOf) for (const { item } of batch) this.#busy.add(this.#keyOf(item))
    for (const one of batch) one.begin?.()
    return batch
  }

  release(batch: readonly Waiting<I, O>[]): void {
    if (!this.#keyOf) return
    for (const { item } of batch) {
      const key = this.#keyOf(item)
      this.#busy.delete(key)
      const lists = this.#blocked.get(key)
      if (!lists) continue
      this.#blocked.delete(key)
      for (const list of lists) this.#makeReady(list)
    }
  }

  #orgFor(id: string): Org<I, O> {
    let org = this.#orgs.get(id)
    if (!org) this.#orgs.set(id, (org = { id, lists: new Map(), ready: new Set(), credit: 0 }))
    return org
  }

  #makeReady(list: List<I, O>): void {
    list.org.ready.add(list)
    this.#turns.add(list.org)
  }

  /** Takes what this org may in its turn. Answers its weight. */
  #takeTurn(org: Org<I, O>, { room, share }: { room: number; share: number }, batch: Waiting<I, O>[]): number {
    let sum = 0
    org.credit = Math.min(share, org.credit + share)
    while (org.credit > 0 && sum < room) {
      const [list] = org.ready
      if (!list) break
      // With more than the turn takes it comes last: no key waits for all of another.
      org.ready.delete(list)
      if (this.#busy.has(list.key)) {
        this.#block(list)
        continue
      }
      while (list.items.length > 0 && org.credit > 0 && sum < room) {
        const one = list.items.shift()!
        const own = this.#weight(one.item)
        sum += own
        org.credit -= own
        batch.push(one)
      }
      if (list.items.length > 0) org.ready.add(list)
      else org.lists.delete(list.key)
    }
    return sum
  }

  #block(list: List<I, O>): void {
    const others = this.#blocked.get(list.key)
    if (others) others.push(list)
    else this.#blocked.set(list.key, [list])
  }
}
