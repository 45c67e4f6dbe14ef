import type { Interruptible } from './in-slices.ts'

/**
 * Finds many byte patterns in one pass (Aho–Corasick): the time is that of the text, whatever the patterns are. A state is the
 * longest end of the text that begins some pattern.
 */
export interface Automaton {
  /** What it takes in memory, in about. */
  readonly bytes: number
  /** Length of the text's end that a state stands for: that much may still become a pattern. */
  readonly depth: Int32Array
  /** Length of the longest pattern that ends in a state; 0: none does. */
  readonly found: Int32Array
  /** Which two bytes begin a pattern. Most of most texts does not, and is passed over by this. */
  readonly begins: Uint8Array
  readonly step: (state: number, byte: number) => number
  /** Whether any pattern is in a text. */
  readonly occursIn: (text: Uint8Array) => boolean
}

/** Shorter ones cannot be told by their first two bytes. */
const LEAST_BYTES = 2

const BYTES = 256
/** Of most nodes: their byte, whether they go on, depth and fail. */
const NODE_BYTES = 10

/** So many nodes are looked at in one go. Each may be the end of a long pattern, which takes up to a millisecond. */
const NODES = 16

/** A pattern that is undefined takes long to make: something else may be done meanwhile. */
export function* buildAutomaton(patterns: Iterable<Uint8Array | undefined>): Interruptible<Automaton> {
  const tree = yield* growTree(patterns)
  const { count, byte, goesOn, child, sibling, found, depth, begins } = tree
  yield
  const fail = new Int32Array(count)
  yield
  const root = new Int32Array(BYTES)
  for (let at = firstChild(tree, 0); at !== 0; at = nextChild(tree, 0, at)) root[byte[at]!] = at

  /** Where two bytes lead from the root. There the tree is wide, and there a text spends most of its time. */
  const pairs = new Int32Array(BYTES * BYTES)
  for (let first = 0; first < BYTES; first++) {
    pairs.set(root, first * BYTES)
    const node = root[first]!
    if (node === 0) continue
    for (let at = firstChild(tree, node); at !== 0; at = nextChild(tree, node, at))
      pairs[first * BYTES + byte[at]!] = at
  }

  function step(from: number, next: number): number {
    for (let state = from; state !== 0; state = fail[state]!) {
      if (depth[state] === 1) return pairs[byte[state]! * BYTES + next]!
      if (goesOn[state] !== 0 && byte[state + 1] === next) return state + 1
      for (let at = child[state]!; at !== 0; at = sibling[at]!) if (byte[at] === next) return at
    }
    return root[next]!
  }

  // From the root outwards: the fail of a state is known before it is asked for.
  yield
  let queue = new Int32Array(count)
  let last = 1
  function setFails(first: number): number {
    let at = first
    for (; at < first + NODES && at < last; at++) {
      const parent = queue[at]!
      for (let node = firstChild(tree, parent); node !== 0; node = nextChild(tree, parent, node)) {
        const before = parent === 0 ? 0 : step(fail[parent]!, byte[node]!)
        // A zero that is written takes memory.
        if (before !== 0) fail[node] = before
        if (found[node] === 0 && found[before] !== 0) found[node] = found[before]!
        queue[last++] = node
      }
    }
    return at
  }
  for (let first = 0; first < last; first = setFails(first)) yield
  // What is returned would keep it.
  queue = new Int32Array()

  function occursIn(text: Uint8Array): boolean {
    const { length } = text
    let state = 0
    for (let at = 0; at < length;) {
      if (state === 0) while (at + 1 < length && begins[text[at]! * BYTES + text[at + 1]!] === 0) at += 1
      state = step(state, text[at]!)
      at += 1
      if (found[state] !== 0) return true
    }
    return false
  }

  return { bytes: count * NODE_BYTES, depth, found, begins, step, occursIn }
}

/** Most trees need no more room. */
const FIRST_NODES = 32 * 1024
/** Of a pattern in one go: with 256 branches at each node that is a millisecond. */
const PIECE_BYTES = 1024

interface Tree {
  count: number
  byte: Uint8Array
  /** 1: the next node is a child of this one. Of most nodes it is the only one. */
  goesOn: Uint8Array
  /** The first of its other children. */
  child: Int32Array
  /** Of those others the next one. */
  sibling: Int32Array
  found: Int32Array
  depth: Int32Array
}

function firstChild({ child, goesOn }: Tree, node: number): number {
  return child[node] !== 0 ? child[node]! : goesOn[node] !== 0 ? node + 1 : 0
}

function nextChild({ sibling, goesOn }: Tree, parent: number, at: number): number {
  if (at === parent + 1) return 0
  return sibling[at] !== 0 ? sibling[at]! : goesOn[parent] !== 0 ? parent + 1 : 0
}

/**
 * All patterns as a tree of their bytes; node 0 is its root. Of their memory the system gives what is written to: what
 * few nodes have takes next to none.
 */
function* growTree(patterns: Iterable<Uint8Array | undefined>): Interruptible<Tree & Pick<Automaton, 'begins'>> {
  const begins = new Uint8Array(BYTES * BYTES)
  const tree: Tree = {
    count: 1,
    byte: new Uint8Array(FIRST_NODES),
    goesOn: new Uint8Array(FIRST_NODES),
    child: new Int32Array(FIRST_NODES),
    sibling: new Int32Array(FIRST_NODES),
    found: new Int32Array(FIRST_NODES),
    depth: new Int32Array(FIRST_NODES),
  }
  for (const pattern of patterns) {
    yield
    if (!pattern) continue
    const { length } = pattern
    if (length < LEAST_BYTES) throw new RangeError(`a pattern of ${length} bytes`)
    begins[pattern[0]! * BYTES + pattern[1]!] = 1
    let node = 0
    for (let at = 0; at < length; at += PIECE_BYTES) {
      if (at > 0) yield
      if (tree.count + PIECE_BYTES > tree.byte.length) yield* makeRoom(tree)
      node = grow(tree, node, pattern, at)
    }
    tree.found[node] = length
  }
  return { ...tree, begins }
}

/** By a piece of a pattern, from the node where the one before it ended. */
function grow(tree: Tree, from: number, pattern: Uint8Array, start: number): number {
  const { byte, goesOn, child, sibling, depth } = tree
  const end = Math.min(start + PIECE_BYTES, pattern.length)
  let node = from
  for (let i = start; i < end; i++) {
    const wanted = pattern[i]!
    let next = firstChild(tree, node)
    while (next !== 0 && byte[next] !== wanted) next = nextChild(tree, node, next)
    if (next === 0) {
      next = tree.count++
      byte[next] = wanted
      if (next === node + 1) goesOn[node] = 1
      else {
        sibling[next] = child[node]!
        child[node] = next
      }
      depth[next] = depth[node]! + 1
    }
    node = next
  }
  return node
}

function* makeRoom(tree: Tree): Interruptible<void> {
  const length = 2 * tree.byte.length
  tree.byte = yield* copied(tree.byte, new Uint8Array(length))
  tree.goesOn = yield* copied(tree.goesOn, new Uint8Array(length))
  tree.child = yield* copied(tree.child, new Int32Array(length))
  tree.sibling = yield* copied(tree.sibling, new Int32Array(length))
  tree.found = yield* copied(tree.found, new Int32Array(length))
  tree.depth = yield* copied(tree.depth, new Int32Array(length))
}

const COPIED = 64 * 1024
/** A page of the memory. */
const PAGE = 1024

function* copied<T extends Uint8Array | Int32Array>(from: T, to: T): Interruptible<T> {
  for (let at = 0; at < from.length; at += PAGE) {
    if (at % COPIED === 0) yield
    const page = from.subarray(at, at + PAGE)
    if (page.some((value) => value !== 0)) to.set(page, at)
  }
  return to
}
