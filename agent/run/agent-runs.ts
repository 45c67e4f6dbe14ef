import type { AgentRun } from './agent-run.ts'
import { keyOf } from './spool/held.ts'

/** The runs that this agent has taken and not brought to an end. */
export interface AgentRuns {
  readonly size: number
  add(agentRun: AgentRun): void
  /** Its slot, if it had one, is free. */
  remove(agentRun: AgentRun): void
  /** Told after each removal. */
  onFreed(listener: () => void): void
  /** Calls `go` at once, or when nothing is left here of any placement of the run. Answers how to give up. */
  whenGone(run: string, go: () => void): () => void
  find(run: string, epoch: number): AgentRun | undefined
  all(): AgentRun[]
  /** How many slots are occupied, by all but those that only wait. */
  computing(): number
  /** Resolves when there is none. */
  empty(): Promise<void>
}

export function createAgentRuns(): AgentRuns {
  const byKey = new Map<string, AgentRun>()
  let whenEmpty: (() => void)[] = []
  let onFreed: () => void = () => undefined
  let waiting: { run: string; go: () => void }[] = []
  const isHere = (run: string) => [...byKey.values()].some(({ offer }) => offer.run === run)

  function tellWaiting(run: string): void {
    if (isHere(run)) return
    const ready = waiting.filter((each) => each.run === run)
    waiting = waiting.filter((each) => each.run !== run)
    for (const { go } of ready) go()
  }

  return {
    get size() {
      return byKey.size
    },
    add(agentRun) {
      const { run, epoch } = agentRun.offer
      // Its process would be in no list: nobody could end it.
      if (byKey.has(keyOf(run, epoch))) throw new Error(`${run} is here already under ${epoch}`)
      byKey.set(keyOf(run, epoch), agentRun)
    },
    remove(agentRun) {
      const { run, epoch } = agentRun.offer
      if (byKey.get(keyOf(run, epoch)) !== agentRun) return
      byKey.delete(keyOf(run, epoch))
      onFreed()
      tellWaiting(run)
      if (byKey.size > 0) return
      for (const resolve of whenEmpty) resolve()
      whenEmpty = []
    },
    onFreed: (listener) => void (onFreed = listener),
    whenGone(run, go) {
      const mine = { run, go }
      if (isHere(run)) waiting.push(mine)
      else go()
      return () => void (waiting = waiting.filter((each) => each !== mine))
    },
    find: (run, epoch) => byKey.get(keyOf(run, epoch)),
    all: () => [...byKey.values()],
    computing() {
      let count = 0
      for (const agentRun of byKey.values()) if (!agentRun.isParked) count += agentRun.offer.slots
      return count
    },
    empty: () => (byKey.size === 0 ? Promise.resolve() : new Promise((resolve) => whenEmpty.push(resolve))),
  }
}
