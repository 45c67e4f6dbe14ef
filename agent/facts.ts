import type { Unready } from '@windlass/shared/model/runner.ts'
import type { AgentFacts } from '@windlass/shared/wire/agent.ts'

/** What this agent says about itself. It is told again whenever `version` is another one. */
export interface Facts {
  /** Raised by each change. */
  readonly version: number
  current(): AgentFacts
  set(news: Partial<Omit<AgentFacts, 'unready'>>): void
  /** What one part of the agent has found to be in the way of work; it takes the place of what that part had found before. */
  unready(part: string, found: readonly Unready[]): void
  isReady(): boolean
  /** Told after each change. */
  onChange(listener: () => void): void
}

export function createFacts(first: Omit<AgentFacts, 'unready'>): Facts {
  let own = first
  let version = 1
  const found = new Map<string, readonly Unready[]>()
  const listeners: (() => void)[] = []
  const current = (): AgentFacts => ({ ...own, unready: [...found.values()].flat() })
  const changing = (change: () => void) => {
    const before = JSON.stringify(current())
    change()
    if (JSON.stringify(current()) === before) return
    version += 1
    for (const listener of listeners) listener()
  }
  return {
    get version() {
      return version
    },
    current,
    set: (news) => changing(() => (own = { ...own, ...news })),
    unready: (part, list) => changing(() => found.set(part, list)),
    isReady: () => [...found.values()].every((list) => list.length === 0),
    onChange: (listener) => void listeners.push(listener),
  }
}
