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
  return {
    get size() {
      return byKey.size
    },
    add: (agentRun) => void byKey.set(keyOf(agentRun.offer.run, agentRun.offer.epoch), agentRun),
    remove(agentRun) {
      byKey.delete(keyOf(agentRun.offer.run, agentRun.offer.epoch))
      onFreed()
      if (byKey.size > 0) return
      for (const resolve of whenEmpty) resolve()
      whenEmpty = []
    },
    onFreed: (listener) => void (onFreed = listener),
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
