import type { Held, Written } from '../run/spool/held.ts'
import type { Position } from '../run/spool/position.ts'

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

/** What is written and not sent, in memory. */
export class Waiting {
  readonly #turns: Turns
  #written: Written[] = []
  #chars = 0

  constructor(turns: Turns) {
    this.#turns = turns
  }

  get chars(): number {
    return this.#chars
  }

  get isEmpty(): boolean {
    return this.#written.length === 0
  }

  add(written: Written): void {
    this.#written.push(written)
    this.#chars += written.json.length
  }

  clear(): void {
    this.#written = []
    this.#chars = 0
  }

  /** In turns: of each placement what it has said first, beginning with whom was sent nothing for the longest time. */
  takeFrame(mostChars: number): Written[] {
    const byHeld = Map.groupBy(this.#written, ({ held }) => held)
    const inTurn = [...byHeld.keys()].toSorted((a, b) => this.#turns.last(a) - this.#turns.last(b))
    const taken = new Set<Written>()
    let chars = 0
    for (const held of inTurn) {
      let own = 0
      for (const each of byHeld.get(held)!) {
        if (chars >= mostChars || own >= mostChars / inTurn.length) break
        taken.add(each)
        chars += each.json.length
        own += each.json.length
      }
      if (own > 0) this.#turns.serves(held)
    }
    this.#chars -= chars
    this.#written = this.#written.filter((each) => !taken.has(each))
    return [...taken]
  }

  /** Takes out who has most in it, until so many characters are left at most. Answers where what each had begins. */
  takeLoudest(mostChars: number): Map<Held, Position> {
    const byHeld = [...Map.groupBy(this.#written, ({ held }) => held)]
    const each = byHeld.map(([held, own]) => ({ held, at: own[0]!.at, chars: charsOf(own) }))
    const taken = new Map<Held, Position>()
    for (const { held, at, chars } of each.toSorted((a, b) => b.chars - a.chars)) {
      if (this.#chars <= mostChars) break
      taken.set(held, at)
      this.#chars -= chars
    }
    this.#written = this.#written.filter(({ held }) => !taken.has(held))
    return taken
  }
}

function charsOf(written: readonly Written[]): number {
  return written.reduce((sum, { json }) => sum + json.length, 0)
}
