/** Processes, servers and folders that a bench must not leave behind, however it ends. */
export interface Belongings {
  /** Resolves like `starting`. `close` waits for it and stops it, even when it is called before the start is over. */
  add<T>(starting: Promise<T>, stop: (started: T) => unknown): Promise<T>
  /** `close` calls it in its turn. */
  defer(stop: () => unknown): void
  /** Stops everything, the last first. A failure does not keep it from stopping the others. */
  close(): Promise<void>
}

const open = new Set<Belongings>()
let isOver = false

export function createBelongings(): Belongings {
  const stops: (() => Promise<unknown>)[] = []
  let closing: Promise<void> | undefined
  const own: Belongings = {
    add(starting, stop) {
      own.defer(() => starting.then(stop, () => undefined))
      return starting
    },
    defer(stop) {
      if (closing || isOver) throw new Error('nothing is started any more: the bench is stopping')
      stops.push(async () => stop())
    },
    close: () => (closing ??= closeAll(stops).finally(() => open.delete(own))),
  }
  open.add(own)
  return own
}

async function closeAll(stops: (() => Promise<unknown>)[]): Promise<void> {
  const errors: unknown[] = []
  for (const stop of stops.toReversed()) await stop().catch((error: unknown) => errors.push(error))
  if (errors.length > 0) throw new AggregateError(errors, `${errors.length} parts could not be stopped`)
}

/** Stops all belongings of this process, on Ctrl-C. After it nothing can be started. */
export async function closeEverything(): Promise<void> {
  isOver = true
  await Promise.allSettled([...open].map((each) => each.close()))
}
