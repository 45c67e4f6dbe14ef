import type { Automaton } from './automaton.ts'

/** What stands where a secret was. Shorter than any secret that is hidden, so that no text grows. */
export const STARS = '***'
/** What a runtime writes where it has cut something off. */
export const CUT = '…'

/** Bytes go in as they come, and out again without what the automaton finds. */
export interface RedactionStream {
  /** What is certain by now. What may be the beginning of a secret is kept back until that is decided. */
  push(chunk: Uint8Array): Buffer
  /** The rest: no more comes. */
  end(): Buffer
  /** How much of the end is kept back. */
  readonly heldBytes: number
}

interface Region {
  from: number
  to: number
}

const STAR_BYTES = Buffer.from(STARS)

/** Regions that touch become one: how many secrets stood there is nobody's business. */
export function createRedactionStream({ depth, found, begins, step }: Automaton): RedactionStream {
  let state = 0
  /** Seen and not given out: as much as `state` stands for. Positions count from its start. */
  const held = new HeldBytes()
  let regions: Region[] = []
  /** The stars of what ends here have been given out already; -1: nothing of the kind. */
  let writtenTo = -1

  function mark(from: number, to: number): void {
    let region = { from, to }
    while (regions.length > 0 && regions.at(-1)!.to >= region.from) {
      const before = regions.pop()!
      region = { from: Math.min(before.from, region.from), to }
    }
    if (region.from <= writtenTo) writtenTo = to
    else regions.push(region)
  }

  function look(text: Buffer, start: number): void {
    const { length } = text
    let now = state
    for (let at = start; at < length;) {
      if (now === 0) while (at + 1 < length && begins[text[at]! * 256 + text[at + 1]!] === 0) at += 1
      now = step(now, text, at)
      at += 1
      const longest = found(now)
      if (longest !== 0) mark(at - longest, at)
    }
    state = now
  }

  /** Everything before `to`, which nothing to come can change. */
  function take(text: Buffer, to: number): Buffer {
    const parts: Buffer[] = []
    let at = Math.min(Math.max(writtenTo, 0), to)
    const certain = regions.filter(({ from }) => from < to)
    for (const region of certain) {
      parts.push(text.subarray(at, region.from), STAR_BYTES)
      at = Math.min(region.to, to)
      writtenTo = region.to
    }
    parts.push(text.subarray(at, to))
    writtenTo = writtenTo < to ? -1 : writtenTo - to
    regions = regions.slice(certain.length).map(({ from, to: end }) => ({ from: from - to, to: end - to }))
    return parts.length === 1 ? parts[0]! : Buffer.concat(parts)
  }

  return {
    push(chunk) {
      const before = held.length
      const text = held.join(Buffer.from(chunk.buffer, chunk.byteOffset, chunk.byteLength))
      look(text, before)
      const certain = text.length - depth(state)
      // What lies in the store is written over by what comes next.
      const given = before === 0 ? take(text, certain) : Buffer.from(take(text, certain))
      if (before === 0 || certain > 0) held.keep(text.subarray(certain))
      else held.length = text.length
      return given
    },
    end() {
      const rest = Buffer.from(take(held.all(), held.length))
      state = 0
      held.length = 0
      writtenTo = -1
      return rest
    },
    get heldBytes() {
      return held.length
    },
  }
}

/** They lie in a store that grows, so that a long secret may come byte by byte and is not copied at each of them. */
class HeldBytes {
  length = 0
  #store: Buffer = Buffer.alloc(0)

  all(): Buffer {
    return this.#store.subarray(0, this.length)
  }

  /** What is held and these bytes behind it. They count as held only when that is said. */
  join(bytes: Buffer): Buffer {
    if (this.length === 0) return bytes
    const total = this.length + bytes.length
    if (total > this.#store.length) {
      const larger = Buffer.alloc(2 * total)
      this.#store.copy(larger, 0, 0, this.length)
      this.#store = larger
    }
    bytes.copy(this.#store, this.length)
    return this.#store.subarray(0, total)
  }

  keep(rest: Buffer): void {
    this.length = rest.length
    if (rest.length > this.#store.length) this.#store = Buffer.alloc(2 * rest.length)
    // Where it lies there already, it is moved to the front.
    rest.copy(this.#store)
  }
}
