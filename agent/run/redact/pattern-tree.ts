import type { Interruptible } from './in-slices.ts'

/**
 * All patterns as a tree of their bytes. Nearly all nodes have one child: such ones follow each other as a chain, which
 * takes a byte and some bits for each. All else is known of the chain.
 */
export interface PatternTree {
  /** Node 0 is the root. */
  readonly count: number
  /** By which byte a node is reached. */
  readonly byte: Uint8Array
  /** Bits: the node begins a chain. So does the one behind the last. */
  readonly starts: Int32Array
  /** Bits: a pattern ends at the node. One always does where a chain ends. */
  readonly ends: Int32Array
  /** Bits: the node has children in other chains. */
  readonly forks: Int32Array
  /** Bits: it is kept where the node fails to. */
  readonly fails: Int32Array
  readonly chains: Chains
  /** Hash table of what begins at a node besides its own chain: the last of such chains, and 1. */
  readonly slots: Int32Array
  /** Children of the root. Each begins a chain. */
  readonly root: Int32Array
  /** Where two bytes lead from the root, if anywhere. The tree is widest there. */
  readonly second: Int32Array
}

/** The later one begins at a larger node. */
interface Chains {
  readonly count: number
  /** Its first node. */
  readonly start: Int32Array
  readonly parent: Int32Array
  /** Depth of its first node. */
  readonly depth: Int32Array
  /** The one before it that begins at the same parent, and 1. */
  readonly sibling: Int32Array
}

export const BYTES = 256
/** Shorter ones cannot be told by their first two bytes. */
const LEAST_BYTES = 2
/** Most trees need no more room. */
const FIRST_NODES = 32 * 1024
const FIRST_CHAINS = 1024
/** Of a pattern in one go: with 256 branches at each node that is a millisecond. */
const PIECE_BYTES = 1024

export const has = (bits: Int32Array, at: number) => ((bits[at >>> 5]! >>> (at & 31)) & 1) !== 0

export function mark(bits: Int32Array, at: number): void {
  bits[at >>> 5]! |= 1 << (at & 31)
}

/** What the tree takes in memory. */
export function bytesOfTree({ count, chains, slots, root, second }: PatternTree): number {
  const ofNodes = count + count / 2
  return Math.ceil(ofNodes + chains.count * 16 + slots.byteLength + root.byteLength + second.byteLength)
}

export class TooMuchToFind extends Error {
  override readonly name = 'TooMuchToFind'
}

export function* growTree(patterns: Iterable<Uint8Array | undefined>, mostBytes: number): Interruptible<PatternTree> {
  const tree = emptyTree()
  for (const pattern of patterns) {
    yield
    if (!pattern) continue
    const { length } = pattern
    if (length < LEAST_BYTES) throw new RangeError(`a pattern of ${length} bytes`)
    let node = 0
    for (let at = 0; at < length; at += PIECE_BYTES) {
      if (at > 0) yield
      if (tree.count + PIECE_BYTES >= tree.byte.length) yield* makeRoomForNodes(tree)
      if (tree.chains.count + PIECE_BYTES > tree.chains.start.length) yield* makeRoomForChains(tree)
      node = grow(tree, node, pattern, at)
      if (bytesOfTree(tree) > mostBytes) throw new TooMuchToFind()
    }
    mark(tree.ends, node)
  }
  mark(tree.starts, tree.count)
  return tree
}

type Growing<T> = { -readonly [K in keyof T]: T[K] }
type GrowingTree = Growing<Omit<PatternTree, 'chains'>> & { chains: Growing<Chains> }

function emptyTree(): GrowingTree {
  const bits = () => new Int32Array(FIRST_NODES / 32)
  const ofChains = () => new Int32Array(FIRST_CHAINS)
  return {
    count: 1,
    byte: new Uint8Array(FIRST_NODES),
    starts: bits(),
    ends: bits(),
    forks: bits(),
    fails: bits(),
    chains: { count: 0, start: ofChains(), parent: ofChains(), depth: ofChains(), sibling: ofChains() },
    slots: new Int32Array(2 * FIRST_CHAINS),
    root: new Int32Array(BYTES),
    second: new Int32Array(BYTES * BYTES),
  }
}

/** By a piece of a pattern, from the node where the one before it ended. */
function grow(tree: GrowingTree, from: number, pattern: Uint8Array, start: number): number {
  const { byte, root, second } = tree
  const end = Math.min(start + PIECE_BYTES, pattern.length)
  let node = from
  for (let i = start; i < end; i++) {
    const wanted = pattern[i]!
    let next = i === 0 ? root[wanted]! : i === 1 ? second[pattern[0]! * BYTES + wanted]! : childOf(tree, node, wanted)
    if (next === 0) {
      next = tree.count++
      byte[next] = wanted
      if (i === 0) root[wanted] = next
      if (i === 1) second[pattern[0]! * BYTES + wanted] = next
      if (i === 0 || next !== node + 1 || has(tree.ends, node)) addChain(tree, next, node, i + 1)
    }
    node = next
  }
  return node
}

function addChain({ chains, starts, forks, slots }: GrowingTree, start: number, parent: number, depth: number): void {
  const chain = chains.count++
  mark(starts, start)
  chains.start[chain] = start
  chains.parent[chain] = parent
  chains.depth[chain] = depth
  if (parent === 0) return
  mark(forks, parent)
  const slot = slotOf(slots, chains, parent)
  chains.sibling[chain] = slots[slot]!
  slots[slot] = chain + 1
}

function slotOf(slots: Int32Array, { parent }: Chains, node: number): number {
  const mask = slots.length - 1
  let slot = (Math.imul(node, 0x9e_37_79_b1) >>> 7) & mask
  while (slots[slot] !== 0 && parent[slots[slot]! - 1] !== node) slot = (slot + 1) & mask
  return slot
}

/** Of the chains that begin at a node besides its own one, and 1; 0: there is none. `sibling` tells the others. */
export function branchesAt({ forks, slots, chains }: PatternTree, node: number): number {
  return has(forks, node) ? slots[slotOf(slots, chains, node)]! : 0
}

/** 0: it has no such child. Not for the root. */
export function childOf(tree: PatternTree, node: number, wanted: number): number {
  const { byte, starts } = tree
  const next = node + 1
  if (byte[next] === wanted && next < tree.count && !has(starts, next)) return next
  return has(tree.forks, node) ? branchOf(tree, node, wanted) : 0
}

/** Of a node that is forks. */
export function branchOf({ byte, slots, chains }: PatternTree, node: number, wanted: number): number {
  const { start, sibling } = chains
  for (let at = slots[slotOf(slots, chains, node)]!; at !== 0; at = sibling[at - 1]!) {
    const first = start[at - 1]!
    if (byte[first] === wanted) return first
  }
  return 0
}

/** The last that begins at a node or before it. */
export function chainAt({ start, count }: Chains, node: number): number {
  let low = 0
  let high = count - 1
  while (low < high) {
    const middle = (low + high + 1) >>> 1
    if (start[middle]! <= node) low = middle
    else high = middle - 1
  }
  return low
}

export function depthOf({ chains }: PatternTree, node: number): number {
  if (node === 0) return 0
  const chain = chainAt(chains, node)
  return chains.depth[chain]! + node - chains.start[chain]!
}

export function parentOf({ chains, starts }: PatternTree, node: number): number {
  return has(starts, node) ? chains.parent[chainAt(chains, node)]! : node - 1
}

function* makeRoomForNodes(tree: GrowingTree): Interruptible<void> {
  const length = 2 * tree.byte.length
  tree.byte = yield* copied(tree.byte, new Uint8Array(length))
  tree.starts = yield* copied(tree.starts, new Int32Array(length / 32))
  tree.ends = yield* copied(tree.ends, new Int32Array(length / 32))
  tree.fails = new Int32Array(length / 32)
  tree.forks = yield* copied(tree.forks, new Int32Array(length / 32))
}

function* makeRoomForChains(tree: GrowingTree): Interruptible<void> {
  const { chains } = tree
  const length = 2 * chains.start.length
  for (const name of ['start', 'parent', 'depth', 'sibling'] as const)
    chains[name] = yield* copied(chains[name], new Int32Array(length))
  const slots = new Int32Array(2 * length)
  // Of those at the same node the last one stands for all.
  for (let chain = 0; chain < chains.count; chain++) {
    if (chain % PIECE_BYTES === 0) yield
    const parent = chains.parent[chain]!
    if (parent !== 0) slots[slotOf(slots, chains, parent)] = chain + 1
  }
  tree.slots = slots
}

const COPIED = 64 * 1024

export function* copied<T extends Uint8Array | Int32Array>(from: T, to: T): Interruptible<T> {
  for (let at = 0; at < from.length; at += COPIED) {
    yield
    to.set(from.subarray(at, at + COPIED), at)
  }
  return to
}
