import type { AgentFrame } from '@windlass/shared/wire/agent.ts'
import type { Session } from './session.ts'
import * as store from './store.ts'

type OfItself = Pick<Extract<AgentFrame, { t: 'heartbeat' }>, 'slots' | 'facts'>

/**
 * Stores what an agent says of itself with its heartbeats, unless it is what this connection said last. Answers whether
 * it has changed. An org has one such statement at a time: those of 900 agents with each heartbeat had all connections
 * to the database, and wrote the rows that the heartbeats of all orgs write, so that others waited for 3 s.
 */
export function createSelfNotes(session: Session): (said: OfItself) => Promise<boolean> {
  const { deps, runner } = session
  let last: { slots?: number; facts?: string } = {}
  return async ({ slots, facts }) => {
    const text = facts && JSON.stringify(facts)
    const news = {
      ...(slots !== undefined && slots !== last.slots && { slots }),
      ...(facts && text !== last.facts && { facts }),
    }
    if (news.slots === undefined && news.facts === undefined) return false
    const leaveSeat = await deps.sockets.selfNotes.take(runner.orgId)
    try {
      if (session.isOver) return false
      await store.noteFacts(deps.db, { id: runner.id, connection: session.connection }, news)
    } finally {
      leaveSeat()
    }
    last = { ...last, ...(slots !== undefined && { slots }), ...(text !== undefined && { facts: text }) }
    return true
  }
}
