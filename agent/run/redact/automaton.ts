import { createFailRuns, type FailRuns } from './fail-runs.ts'
import type { Interruptible } from './in-slices.ts'
import {
  branchesAt,
  branchOf,
  BYTES,
  bytesOfTree,
  chainAt,
  childOf,
  depthOf,
  growTree,
  has,
  mark,
  parentOf,
  type PatternTree,
} from './pattern-tree.ts'

/**
 * Finds many byte patterns in one pass (Aho–Corasick): the time is that of the text, whatever the patterns are. A state is the
 * longest end of the text that begins some pattern.
 */
export interface Automaton {
  /** What it takes in memory, in about. */
  readonly bytes: number
  /** Length of the text's end that a state stands for: that much may still become a pattern. */
  readonly depth: (state: number) => number
  /** Length of the longest pattern that ends in a state; 0: none does. */
  readonly found: (state: number) => number
  /** Which two bytes begin a pattern. Most of most texts does not, and is passed over by this. */
  readonly begins: Uint8Array
  /** With the byte at a place. Before it in the text are all bytes that the state stands for. */
  readonly step: (state: number, text: Uint8Array, at: number) => number
  /** Whether any pattern is in a text. */
  readonly occursIn: (text: Uint8Array) => boolean
}

/** So many chains go on by a node in one go. Each may be the end of a long pattern, which takes up to a millisecond. */
const NODES = 16
/** Where a state fails to one of less depth, that is found anew from its last bytes: most fail to such. */
const LEAST_FAIL = 4
const LAST_BYTES = LEAST_FAIL - 1

/**
 * A pattern that is undefined takes long to make: something else may be done meanwhile. Throws `TooMuchToFind` when it
 * would take more than `mostBytes` in memory.
 */
export function* buildAutomaton(
  patterns: Iterable<Uint8Array | undefined>,
  mostBytes = Infinity,
): Interruptible<Automaton> {
  const tree = yield* growTree(patterns, mostBytes)
  const runs = createFailRuns(tree)
  const states = createStates(tree, runs)
  const ofTree = bytesOfTree(tree)
  yield* setFails(tree, runs, states, mostBytes - ofTree)
  yield* runs.settle()
  const { step, depth, found } = states
  const begins = new Uint8Array(BYTES * BYTES)
  for (const [pair, node] of tree.second.entries()) if (node !== 0) begins[pair] = 1

  function occursIn(text: Uint8Array): boolean {
    const { length } = text
    let state = 0
    for (let at = 0; at < length;) {
      if (state === 0) while (at + 1 < length && begins[text[at]! * BYTES + text[at + 1]!] === 0) at += 1
      state = step(state, text, at)
      at += 1
      if (found(state) !== 0) return true
    }
    return false
  }

  return { bytes: ofTree + runs.bytes + begins.length, depth, found, begins, step, occursIn }
}

type States = Pick<Automaton, 'step' | 'depth' | 'found'>

function createStates(tree: PatternTree, runs: FailRuns): States {
  const { byte, starts, ends, forks, fails, root, second } = tree

  /** Of a state that fails to less than `LEAST_FAIL` bytes: the last ones of the text tell to which. */
  function fromLastBytes(state: number, text: Uint8Array, at: number): number {
    const next = text[at]!
    const last = text[at - 1]!
    if (at > 1) {
      const two = second[text[at - 2]! * BYTES + last]!
      if (two !== state && at > 2) {
        const before = second[text[at - 3]! * BYTES + text[at - 2]!]!
        const three = before === 0 ? 0 : childOf(tree, before, last)
        const four = three === 0 || three === state ? 0 : childOf(tree, three, next)
        if (four !== 0) return four
      }
      const three = two === 0 || two === state ? 0 : childOf(tree, two, next)
      if (three !== 0) return three
    }
    return afterOne(last, next)
  }

  function afterOne(last: number, next: number): number {
    const node = second[last * BYTES + next]!
    return node === 0 ? root[next]! : node
  }

  function step(from: number, text: Uint8Array, at: number): number {
    const next = text[at]!
    let state = from
    while (state !== 0) {
      const after = state + 1
      if (byte[after] === next && !has(starts, after)) return after
      if (has(starts, state) && root[byte[state]!] === state) return afterOne(byte[state]!, next)
      const branch = has(forks, state) ? branchOf(tree, state, next) : 0
      if (branch !== 0) return branch
      if (!has(fails, state)) return fromLastBytes(state, text, at)
      state = runs.failOf(state)
    }
    return root[next]!
  }

  function found(state: number): number {
    if (!has(ends, state)) return 0
    return has(starts, state + 1) ? depthOf(tree, state) : runs.foundOf(state)
  }

  return { step, depth: (state) => depthOf(tree, state), found }
}

interface Parent {
  node: number
  fail: number
  depth: number
}

/** From the root outwards, all chains by a node at a time: the fail of a state is known before it is asked for. */
function* setFails(tree: PatternTree, runs: FailRuns, { step, found }: States, mostBytes: number): Interruptible<void> {
  const { byte, starts, ends, root, second, chains } = tree
  /** Of the node that a chain has come to: where it fails to, and the depth of that. */
  const fails = new Int32Array(chains.count)
  const depths = new Int32Array(chains.count)

  function note(chain: number, node: number, depth: number): void {
    const fail = fails[chain]!
    const isOwn = has(ends, node)
    const longest = isOwn ? depth : found(fail)
    if (longest !== 0) mark(ends, node)
    const isStored = depths[chain]! >= LEAST_FAIL
    if (isStored) mark(tree.fails, node)
    runs.add(chain, node, isStored ? fail : 0, has(starts, node + 1) ? undefined : longest)
  }

  function goOn(chain: number, node: number, parent: Parent): void {
    const isInChain = node - chains.start[chain]! >= LAST_BYTES
    const fail = isInChain ? step(parent.fail, byte, node) : stepFrom(parent, byte[node]!)
    fails[chain] = fail
    if (fail === parent.fail + 1 && !has(starts, fail)) depths[chain] = parent.depth + 1
    else if (fail === root[byte[node]!]) depths[chain] = fail === 0 ? 0 : 1
    else if (fail === second[byte[parent.node]! * BYTES + byte[node]!]) depths[chain] = 2
    else depths[chain] = depthOf(tree, fail)
  }

  function stepFrom(parent: Parent, next: number): number {
    const path = [next]
    for (let at = parent.node; at !== 0 && path.length <= LAST_BYTES; at = parentOf(tree, at)) path.unshift(byte[at]!)
    return step(parent.fail, Uint8Array.from(path), path.length - 1)
  }

  let active = Array.from(root, (node) => (node === 0 ? -1 : chainAt(chains, node))).filter((chain) => chain >= 0)
  for (let depth = 1; active.length > 0; depth++) {
    const begun: number[] = []
    let left = 0
    for (let i = 0; i < active.length; i++) {
      if (i % NODES === 0) yield* runs.makeRoom(mostBytes)
      const chain = active[i]!
      const node = chains.start[chain]! + depth - chains.depth[chain]!
      note(chain, node, depth)
      const parent = { node, fail: fails[chain]!, depth: depths[chain]! }
      for (let at = branchesAt(tree, node); at !== 0; at = chains.sibling[at - 1]!) {
        goOn(at - 1, chains.start[at - 1]!, parent)
        begun.push(at - 1)
      }
      if (has(starts, node + 1)) continue
      goOn(chain, node + 1, parent)
      active[left++] = chain
    }
    active.length = left
    active = begun.length === 0 ? active : active.concat(begun)
  }
}
