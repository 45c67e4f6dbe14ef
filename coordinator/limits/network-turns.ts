import { createBySize } from './by-size.ts'

/**
 * What waits for its turn, by where it comes from. Wide networks take turns, in each of them its parts, and in those
 * the networks that are told apart elsewhere: of IPv6 by /32, /48 and /64, of IPv4 by /16, /24 and address.
 *
 * Anybody may have a /48 of IPv6, with 65,536 networks; a small provider has a /32, with 65,536 of those. Of IPv4 a
 * /24 is the least that is routed, and who rents addresses from a hoster gets them here and there in its /16. All that
 * has one turn, and within it no more than a customer of the same hoster or provider who has one address.
 */
export interface NetworkTurns<T> {
  readonly size: number
  /** `network`: as `networkOf` has it. */
  add(network: string, item: T): void
  /** False: it waits no more. */
  remove(network: string, item: T): boolean
  /** Those whose turn it is, `most` of them at most. */
  take(most: number): T[]
  /**
   * Takes out the oldest of the network that has most. Undefined: none has clearly more than the one that is named,
   * not even among those with which it shares its turn.
   */
  takeFor(network: string): T | undefined
}

export function createNetworkTurns<T>(): NetworkTurns<T> {
  const all = new Part<T>()
  return {
    get size() {
      return all.count
    },
    add: (network, item) => all.add(pathOf(network), item),
    remove: (network, item) => all.remove(pathOf(network), item),
    take(most) {
      const taken: T[] = []
      while (taken.length < most && all.count > 0) taken.push(all.takeNext()!)
      return taken
    },
    takeFor: (network) => all.takeFor(pathOf(network)),
  }
}

/** The network after the wider ones that it is part of. What is no network, as an org, is thrice itself. */
export function pathOf(network: string): string[] {
  const mark = network.includes(':') ? ':' : '.'
  const groups = network.split(mark)
  return [groups.slice(0, 2).join(mark), groups.slice(0, 3).join(mark), network]
}

class Part<T> {
  count = 0
  /** Of a network that has no parts. */
  readonly #items = new Set<T>()
  /** In the order of their turns. */
  readonly #parts = new Map<string, Part<T>>()
  readonly #bySize = createBySize()

  add([name, ...path]: readonly string[], item: T): void {
    this.count++
    if (name === undefined) return void this.#items.add(item)
    const part = this.#parts.get(name) ?? new Part<T>()
    this.#parts.set(name, part)
    part.add(path, item)
    this.#bySize.set(name, part.count)
  }

  remove([name, ...path]: readonly string[], item: T): boolean {
    const isRemoved = name === undefined ? this.#items.delete(item) : this.#parts.get(name)?.remove(path, item)
    if (isRemoved) this.#noteTaken(name)
    return isRemoved ?? false
  }

  /** Undefined when it is empty. */
  takeNext(): T | undefined {
    const [first] = this.#parts
    if (!first) return this.#takeOldest()
    const [name, part] = first
    const item = part.takeNext()
    // It comes last now.
    this.#parts.delete(name)
    this.#parts.set(name, part)
    this.#noteTaken(name)
    return item
  }

  takeFor([name, ...path]: readonly string[]): T | undefined {
    const largest = this.#bySize.largest()
    if (name === undefined || largest === undefined) return undefined
    const own = this.#parts.get(name)
    const isClear = largest !== name && this.#parts.get(largest)!.count > (own?.count ?? 0) + 1
    const taken = isClear ? this.#takeFrom(largest, (part) => part.#takeOfMost()) : undefined
    return taken ?? (own && this.#takeFrom(name, (part) => part.takeFor(path)))
  }

  #takeOfMost(): T | undefined {
    const largest = this.#bySize.largest()
    return largest === undefined ? this.#takeOldest() : this.#takeFrom(largest, (part) => part.#takeOfMost())
  }

  #takeFrom(name: string, take: (part: Part<T>) => T | undefined): T | undefined {
    const item = take(this.#parts.get(name)!)
    if (item !== undefined) this.#noteTaken(name)
    return item
  }

  #takeOldest(): T | undefined {
    const [item] = this.#items
    if (item !== undefined) this.remove([], item)
    return item
  }

  /** `name`: the part that it was in. */
  #noteTaken(name: string | undefined): void {
    this.count--
    if (name === undefined) return
    const part = this.#parts.get(name)!
    if (part.count > 0) return this.#bySize.set(name, part.count)
    this.#parts.delete(name)
    this.#bySize.remove(name)
  }
}
