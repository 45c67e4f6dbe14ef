/**
 * Finds many byte patterns in one pass (Aho–Corasick): the time is that of the text, whatever the patterns are. A state is the
 * longest end of the text that begins some pattern.
 */
export interface Automaton {
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

export function createAutomaton(patterns: readonly Uint8Array[]): Automaton {
  const most = 1 + patterns.reduce((sum, { length }) => sum + length, 0)
  const tree = growTree(patterns, most)
  const { count, byte, child, sibling, found, depth } = tree
  const fail = new Int32Array(count)
  const root = new Int32Array(BYTES)
  for (let at = child[0] ?? 0; at !== 0; at = sibling[at]!) root[byte[at]!] = at

  /** Where two bytes lead from the root. There the tree is wide, and there a text spends most of its time. */
  const pairs = new Int32Array(BYTES * BYTES)
  for (let first = 0; first < BYTES; first++) {
    pairs.set(root, first * BYTES)
    const node = root[first]!
    if (node === 0) continue
    for (let at = child[node]!; at !== 0; at = sibling[at]!) pairs[first * BYTES + byte[at]!] = at
  }

  function step(from: number, next: number): number {
    for (let state = from; state !== 0; state = fail[state]!) {
      if (depth[state] === 1) return pairs[byte[state]! * BYTES + next]!
      for (let at = child[state]!; at !== 0; at = sibling[at]!) if (byte[at] === next) return at
    }
    return root[next]!
  }

  // From the root outwards: the fail of a state is known before it is asked for.
  const queue = new Int32Array(count)
  let last = 1
  for (let first = 0; first < last; first++) {
    const parent = queue[first]!
    for (let at = child[parent]!; at !== 0; at = sibling[at]!) {
      fail[at] = parent === 0 ? 0 : step(fail[parent]!, byte[at]!)
      if (found[at] === 0) found[at] = found[fail[at]!]!
      queue[last++] = at
    }
  }
  const begins = beginningsOf(patterns)

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

  return { depth, found, begins, step, occursIn }
}

/** All patterns as a tree of their bytes; node 0 is its root. */
function growTree(patterns: readonly Uint8Array[], most: number) {
  const byte = new Uint8Array(most)
  const child = new Int32Array(most)
  const sibling = new Int32Array(most)
  const found = new Int32Array(most)
  const depth = new Int32Array(most)
  let count = 1

  function childOf(node: number, wanted: number): number {
    for (let at = child[node]!; at !== 0; at = sibling[at]!) if (byte[at] === wanted) return at
    const made = count++
    byte[made] = wanted
    sibling[made] = child[node]!
    child[node] = made
    depth[made] = depth[node]! + 1
    return made
  }

  for (const pattern of patterns) {
    if (pattern.length < LEAST_BYTES) throw new RangeError(`a pattern of ${pattern.length} bytes`)
    let node = 0
    for (const each of pattern) node = childOf(node, each)
    found[node] = pattern.length
  }
  // Most patterns share their beginnings: what was too much is given back.
  const cut = <T extends Uint8Array | Int32Array>(array: T) => array.slice(0, count) as T
  return {
    count,
    byte: cut(byte),
    child: cut(child),
    sibling: cut(sibling),
    found: cut(found),
    depth: cut(depth),
  }
}

function beginningsOf(patterns: readonly Uint8Array[]): Uint8Array {
  const begins = new Uint8Array(BYTES * BYTES)
  for (const [first = 0, second = 0] of patterns) begins[first * BYTES + second] = 1
  return begins
}
