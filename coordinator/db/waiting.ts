/** An item of a group commit, with those who wait for its result. */
export interface Waiting<I, O> {
  item: I
  resolve(result: O): void
  reject(error: unknown): void
}

export interface QueueOptions<I> {
  max: number
  weight?: ((item: I) => number) | undefined
  keyOf?: (item: I) => string
}

/** What waits for its commit, in the order in which it came. */
export interface Queue<I, O> {
  add(one: Waiting<I, O>): void
  isEmpty(): boolean
  /** The next batch. Its keys are busy until `release`; what has a busy key stays where it is. */
  take(): Waiting<I, O>[]
  release(batch: readonly Waiting<I, O>[]): void
}

export function createQueue<I, O>({ max, weight = () => 1, keyOf }: QueueOptions<I>): Queue<I, O> {
  let waiting: Waiting<I, O>[] = []
  let head = 0
  const busy = new Set<string>()
  const keysOf = (batch: readonly Waiting<I, O>[]) => (keyOf ? batch.map(({ item }) => keyOf(item)) : [])

  function takeNext(): Waiting<I, O>[] {
    let sum = 0
    let end = head
    while (end < waiting.length && (end === head || sum < max)) sum += weight(waiting[end++]!.item)
    const batch = waiting.slice(head, end)
    head = end
    if (head === waiting.length || head > 10_000) {
      waiting = waiting.slice(head)
      head = 0
    }
    return batch
  }

  function takeFree(): Waiting<I, O>[] {
    const free: Waiting<I, O>[] = []
    const left: Waiting<I, O>[] = []
    let sum = 0
    for (const one of waiting.slice(head)) {
      const isFull = free.length > 0 && sum >= max
      if (isFull || busy.has(keyOf!(one.item))) {
        left.push(one)
        continue
      }
      free.push(one)
      sum += weight(one.item)
    }
    waiting = left
    head = 0
    return free
  }

  return {
    add: (one) => void waiting.push(one),
    isEmpty: () => head === waiting.length,
    take() {
      const batch = busy.size === 0 ? takeNext() : takeFree()
      for (const key of keysOf(batch)) busy.add(key)
      return batch
    },
    release(batch) {
      for (const key of keysOf(batch)) busy.delete(key)
    },
  }
}
