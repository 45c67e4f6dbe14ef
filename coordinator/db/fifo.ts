/** Items in the order in which they came. Unlike an array, a long one gives its first item at no cost. */
export interface Fifo<T> {
  readonly length: number
  push(item: T): void
  shift(): T | undefined
  /** Its cost is the number of items behind it. False: it is not there. */
  remove(item: T): boolean
}

/** Slots given out stay until there are so many, and at least as many as items that wait. */
const MOST_EMPTY = 1000

export function createFifo<T>(): Fifo<T> {
  let items: (T | undefined)[] = []
  let head = 0
  return {
    get length() {
      return items.length - head
    },
    push: (item) => void items.push(item),
    shift() {
      if (head === items.length) return undefined
      const item = items[head]
      items[head++] = undefined
      if (head === items.length) {
        items = []
        head = 0
      } else if (head >= MOST_EMPTY && 2 * head >= items.length) {
        items = items.slice(head)
        head = 0
      }
      return item
    },
    remove(item) {
      const at = items.lastIndexOf(item)
      if (at < head) return false
      items.splice(at, 1)
      return true
    },
  }
}
