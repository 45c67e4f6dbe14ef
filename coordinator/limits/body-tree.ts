import { type ByAge, createByAge } from './by-age.ts'
import { createBySize } from './by-size.ts'

/** A body that may have to give way to others. */
export interface Giving {
  /** Gives its room back. */
  giveWay: () => void
  /** When it began to come. Left out: it has come, and only waits. */
  since?: number
  bytes: number
}

/** Where a body counts: the widest network first, the address last; or an org, at each place. See `pathOf`. */
export type Path = readonly string[]

export interface Found {
  path: Path
  body: object
  one: Giving
}

/**
 * Bodies by where they count, so that the one is found that is of those with the most. Anybody may have a /48 of IPv6:
 * with 2 MiB from each of a hundred networks in it nobody else had as little, and whoever sent 10 MiB was the one with
 * the most.
 */
export class BodyTree {
  readonly #heldBy: (name: string) => number
  /** Of a path that ends here. */
  readonly #bodies = createByAge<object, Giving>()
  readonly #parts = new Map<string, BodyTree>()
  readonly #bySize = createBySize()

  constructor(heldBy: (name: string) => number) {
    this.#heldBy = heldBy
  }

  get #isEmpty(): boolean {
    return this.#bodies.size === 0 && this.#parts.size === 0
  }

  add([name, ...path]: Path, body: object, one: Giving): void {
    if (name === undefined) {
      this.#bodies.set(body, one)
      return
    }
    const part = this.#parts.get(name) ?? new BodyTree(this.#heldBy)
    this.#parts.set(name, part)
    part.add(path, body, one)
    this.#bySize.set(name, this.#heldBy(name))
  }

  remove([name, ...path]: Path, body: object): void {
    if (name === undefined) {
      this.#bodies.delete(body)
      return
    }
    const part = this.#parts.get(name)
    if (!part) return
    part.remove(path, body)
    if (!part.#isEmpty) return
    this.#parts.delete(name)
    this.#bySize.remove(name)
  }

  /** What is held there has changed. */
  rank([name, ...path]: Path): void {
    const part = name === undefined ? undefined : this.#parts.get(name)
    if (!part) return
    this.#bySize.set(name!, this.#heldBy(name!))
    part.rank(path)
  }

  /** The first of the address with the most, in the network with the most of those with which it is in a wider one. */
  firstOfMost(): Found | undefined {
    return this.#ofMost((bodies) => bodies.first())
  }

  /** The last one of it. */
  lastOfMost(): Found | undefined {
    return this.#ofMost((bodies) => bodies.last())
  }

  #ofMost(
    choose: (bodies: ByAge<object, Giving>) => [object, Giving] | undefined,
    above: Path = [],
  ): Found | undefined {
    const most = this.#bySize.largest()
    if (most !== undefined) return this.#parts.get(most)!.#ofMost(choose, [...above, most])
    const found = choose(this.#bodies)
    return found && { path: above, body: found[0], one: found[1] }
  }

  *all(above: Path = []): Generator<Found, void, void> {
    for (const [body, one] of this.#bodies.all()) yield { path: above, body, one }
    for (const [name, part] of this.#parts) yield* part.all([...above, name])
  }
}
