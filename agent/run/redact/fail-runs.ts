import type { Interruptible } from './in-slices.ts'
import { chainAt, copied, TooMuchToFind, type PatternTree } from './pattern-tree.ts'

/**
 * Where a node of a tree leads when the next byte leads to none of its children, and which pattern ends there besides
 * its own. Along a chain the one is mostly the next node, the other the same as before: only where not, a run begins.
 */
export interface FailRuns {
  /** 0: to something so short that it is not kept. */
  failOf(node: number): number
  /** Length of the longest other pattern that ends here. */
  foundOf(node: number): number
  /** Of a chain, node by node. Where `found` is undefined it does not matter. */
  add(chain: number, node: number, fail: number, found: number | undefined): void
  /** For some nodes more. Throws `TooMuchToFind` where that takes too much. */
  makeRoom(mostBytes: number): Interruptible<void>
  /** No more come: what it takes to add is let go. */
  settle(): Interruptible<void>
  readonly bytes: number
}

const FIRST_RUNS = 1024
/** At most so many are added until room is made again. */
const SPARE = 64
const PIECE = 4096

const NAMES = ['start', 'fail', 'found', 'before', 'jump', 'rank'] as const
type Columns = Record<(typeof NAMES)[number], Int32Array>

export function createFailRuns({ chains }: PatternTree): FailRuns {
  return new Runs(chains)
}

class Runs implements FailRuns {
  readonly #chains: PatternTree['chains']
  /**
   * Run 0 is that of chains without any. `before` is the one before it in its chain, and `jump` one far before it, so
   * that a run is found in few steps (a skew-binary list).
   */
  #columns = Object.fromEntries(NAMES.map((name) => [name, new Int32Array(FIRST_RUNS)])) as Columns
  #count = 1
  /** Of each chain. */
  #last: Int32Array
  #isSettled = false

  constructor(chains: PatternTree['chains']) {
    this.#chains = chains
    this.#last = new Int32Array(chains.count)
  }

  get bytes(): number {
    return this.#count * 12
  }

  failOf(node: number): number {
    const run = this.#runOf(node)
    const fail = this.#columns.fail[run]!
    return fail === 0 ? 0 : fail + node - this.#columns.start[run]!
  }

  foundOf(node: number): number {
    return this.#columns.found[this.#runOf(node)]!
  }

  #runOf(node: number): number {
    const { start, before, jump } = this.#columns
    if (this.#isSettled) return lastUpTo(start, this.#count, node)
    let run = this.#last[chainAt(this.#chains, node)]!
    while (start[run]! > node) run = start[jump[run]!]! > node ? jump[run]! : before[run]!
    return run
  }

  add(chain: number, node: number, fail: number, other: number | undefined): void {
    const { start, fail: fails, found: founds, before, jump, rank } = this.#columns
    const last = this.#last[chain]!
    const found = other ?? founds[last]!
    const expected = fails[last] === 0 ? 0 : fails[last]! + node - start[last]!
    if (fail === expected && found === founds[last]) return
    const run = this.#count++
    this.#last[chain] = run
    start[run] = node
    fails[run] = fail
    founds[run] = found
    before[run] = last
    rank[run] = rank[last]! + 1
    const far = jump[last]!
    const toFar = rank[last]! - rank[far]!
    const fromFar = rank[far]! - rank[jump[far]!]!
    jump[run] = toFar === fromFar ? jump[far]! : last
  }

  *makeRoom(mostBytes: number): Interruptible<void> {
    yield
    if (this.bytes > mostBytes) throw new TooMuchToFind()
    if (this.#count + SPARE <= this.#columns.start.length) return
    const length = 2 * this.#columns.start.length
    for (const name of NAMES) this.#columns[name] = yield* copied(this.#columns[name], new Int32Array(length))
  }

  /** In the order of nodes. A chain behind one with runs has one at its start. */
  *settle(): Interruptible<void> {
    const { start: chainStart, count } = this.#chains
    const { start, fail, found, before } = this.#columns
    let total = 1
    for (let chain = 0; chain < count; chain++) {
      if (chain % PIECE === 0) yield
      if (chain > 0 && this.#last[chain - 1] !== 0) total += 1
    }
    total += this.#count - 1
    const sorted = { start: new Int32Array(total), fail: new Int32Array(total), found: new Int32Array(total) }
    let at = total
    for (let chain = count - 1; chain >= 0; chain--) {
      if (chain % PIECE === 0) yield
      for (let run = this.#last[chain]!; run !== 0; run = before[run]!) {
        at -= 1
        if (at % PIECE === 0) yield
        sorted.start[at] = start[run]!
        sorted.fail[at] = fail[run]!
        sorted.found[at] = found[run]!
      }
      // The same node twice: the later one counts.
      if (chain > 0 && this.#last[chain - 1] !== 0) sorted.start[--at] = chainStart[chain]!
    }
    const none = new Int32Array()
    this.#columns = { ...sorted, before: none, jump: none, rank: none }
    this.#count = total
    this.#last = none
    this.#isSettled = true
  }
}

function lastUpTo(sorted: Int32Array, count: number, wanted: number): number {
  let low = 0
  let high = count - 1
  while (low < high) {
    const middle = (low + high + 1) >>> 1
    if (sorted[middle]! <= wanted) low = middle
    else high = middle - 1
  }
  return low
}
