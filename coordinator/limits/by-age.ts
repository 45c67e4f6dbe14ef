/** Values by their keys, in the order in which they were set. Unlike a Map it finds the last one without a walk. */
export interface ByAge<K, V> {
  readonly size: number
  /** One that is there keeps its place. */
  set(key: K, value: V): void
  delete(key: K): void
  first(): [K, V] | undefined
  last(): [K, V] | undefined
  all(): Iterable<[K, V]>
}

/** Keys that are gone stay in the line until there are as many, and some. */
const MOST_GONE = 32

export function createByAge<K, V>(): ByAge<K, V> {
  const values = new Map<K, V>()
  /** Has keys that are gone, too, and those that came again more than once: the last time counts. */
  let line: K[] = []

  return {
    get size() {
      return values.size
    },
    set(key, value) {
      const isNew = !values.has(key)
      values.set(key, value)
      if (!isNew) return
      if (line.length > 2 * values.size + MOST_GONE) line = [...values.keys()]
      else line.push(key)
    },
    delete: (key) => void values.delete(key),
    first: () => values.entries().next().value,
    last() {
      while (line.length > 0 && !values.has(line.at(-1)!)) line.pop()
      return line.length > 0 ? [line.at(-1)!, values.get(line.at(-1)!)!] : undefined
    },
    all: () => values,
  }
}
