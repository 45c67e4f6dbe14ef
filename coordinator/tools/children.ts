import { probe } from '@windlass/shared/probe.ts'
import { type Bounds, type Child, startChild } from './child.ts'

/** The processes of one pool. */
export interface Children<P, A> {
  /** Returns a child that has nothing to do, or a new one. `isNew`: a new one, in the place of one that is free. */
  take(options?: { isNew?: boolean }): Promise<Child<P, A>>
  /** Makes the child free; it ends when nobody takes it again in time. */
  giveBack(child: Child<P, A>): void
  /** Number of children that are up or being started. */
  count(): number
  endAll(): Promise<void>
}

export interface ChildrenOptions<P, A> extends Bounds {
  /** Names the pool in messages and moments: `judging`. */
  name: string
  /** The program, which calls `serve`. */
  entry: URL
  /** A process that had nothing to do for this long ends. */
  idleMs: number
  /** One that runs already, within the same bounds, and has nothing to do. */
  first?: Child<P, A>
  /** Starts one in another way than `startChild`. */
  start?: () => Promise<Child<P, A>>
}

export function keepChildren<P, A>(options: ChildrenOptions<P, A>): Children<P, A> {
  const { name, entry, idleMs, start = () => startChild<P, A>(entry, options) } = options
  const all = new Set<Promise<Child<P, A>>>()
  /** Children that have nothing to do, with the timers that will end them. */
  const free = new Map<Child<P, A>, NodeJS.Timeout>()

  async function join(starting: Promise<Child<P, A>>): Promise<Child<P, A>> {
    all.add(starting)
    try {
      const child = await starting
      probe('tools.started', { name, pid: child.pid })
      void forget(starting, child)
      return child
    } catch (error) {
      all.delete(starting)
      throw error
    }
  }

  async function forget(starting: Promise<Child<P, A>>, child: Child<P, A>): Promise<void> {
    await child.gone
    // One that dies between two jobs is simply not there for the next one.
    stay(child)
    all.delete(starting)
    probe('tools.ended', { name })
  }

  function stay(child: Child<P, A>) {
    clearTimeout(free.get(child))
    free.delete(child)
  }

  function giveBack(child: Child<P, A>) {
    const timer = setTimeout(() => {
      stay(child)
      void child.end()
    }, idleMs)
    free.set(child, timer.unref())
  }

  if (options.first) {
    giveBack(options.first)
    void join(Promise.resolve(options.first))
  }

  return {
    async take({ isNew = false } = {}) {
      // The child that was used last is taken, so that the others come to their end.
      const last = [...free.keys()].at(-1)
      if (last) stay(last)
      if (last && !isNew) return last
      // At once, so that `endAll` knows of it.
      return join(Promise.resolve(last?.end()).then(start))
    },
    giveBack,
    count: () => all.size,
    async endAll() {
      for (const child of free.keys()) stay(child)
      await Promise.all([...all].map((starting) => starting.then((child) => child.end()).catch(() => undefined)))
    },
  }
}
