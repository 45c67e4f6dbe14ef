import type { Held, Written } from '../run/spool/held.ts'
import { isBefore, type Position } from '../run/spool/position.ts'
import { costOf } from './window.ts'

/** The turn is that of whoever was sent nothing for the longest time. */
export class Turns {
  readonly #servedAt = new WeakMap<Held, number>()
  #served = 0

  serves(held: Held): void {
    this.#servedAt.set(held, (this.#served += 1))
  }

  /** When it was sent last, in turns. */
  last(held: Held): number {
    return this.#servedAt.get(held) ?? 0
  }
}

/** A piece of a file that is read, and for whom. */
export interface Turn {
  at: Position
  of: ReadonlySet<Held>
}

export function turnOf(together: readonly (readonly [Held, Position])[]): Turn {
  const at = together.map(([, start]) => start).reduce((one, other) => (isBefore(other, one) ? other : one))
  return { at, of: new Set(together.map(([held]) => held)) }
}

interface Own {
  /** In the order of writing. */
  written: Written[]
  chars: number
}

/** What is written and not sent, in memory. */
export class Waiting {
  readonly #turns: Turns
  readonly #byHeld = new Map<Held, Own>()
  #chars = 0

  constructor(turns: Turns) {
    this.#turns = turns
  }

  get chars(): number {
    return this.#chars
  }

  add(written: Written): void {
    const own = this.#byHeld.get(written.held) ?? { written: [], chars: 0 }
    this.#byHeld.set(written.held, own)
    own.written.push(written)
    own.chars += written.json.length
    this.#chars += written.json.length
  }

  clear(): void {
    this.#byHeld.clear()
    this.#chars = 0
  }

  /**
   * In turns: of each placement what it has said first, beginning with whom was sent nothing for the longest time.
   * Nothing of those that have no room; of the others each passes its room by a batch at most.
   */
  takeFrame(mostChars: number, roomOf: (held: Held) => number): Written[] {
    const rooms = new Map([...this.#byHeld.keys()].map((held) => [held, roomOf(held)]))
    const mayBeSent = [...rooms].filter(([, room]) => room > 0)
    const inTurn = mayBeSent.toSorted(([a], [b]) => this.#turns.last(a) - this.#turns.last(b))
    const taken: Written[] = []
    let chars = 0
    for (const [held, room] of inTurn) {
      if (chars >= mostChars) break
      const own = this.#take(held, { chars: Math.min(mostChars / inTurn.length, mostChars - chars), cost: room })
      chars += charsOf(own)
      taken.push(...own)
      this.#turns.serves(held)
    }
    return taken
  }

  /** Until so much is reached or passed. */
  #take(held: Held, most: { chars: number; cost: number }): Written[] {
    const own = this.#byHeld.get(held)!
    let [chars, cost] = [0, 0]
    const end = own.written.findIndex(({ json, first, last }) => {
      chars += json.length
      cost += costOf(last - first + 1, json.length)
      return chars >= most.chars || cost >= most.cost
    })
    const taken = own.written.splice(0, end === -1 ? own.written.length : end + 1)
    own.chars -= chars
    this.#chars -= chars
    if (own.written.length === 0) this.#byHeld.delete(held)
    return taken
  }

  /** Takes out who has most in it, until so many characters are left at most. Answers where what each had begins. */
  takeLoudest(mostChars: number): Map<Held, Position> {
    const taken = new Map<Held, Position>()
    for (const [held, { written, chars }] of [...this.#byHeld].toSorted(([, a], [, b]) => b.chars - a.chars)) {
      if (this.#chars <= mostChars) break
      taken.set(held, written[0]!.at)
      this.#byHeld.delete(held)
      this.#chars -= chars
    }
    return taken
  }
}

function charsOf(written: readonly Written[]): number {
  return written.reduce((sum, { json }) => sum + json.length, 0)
}
