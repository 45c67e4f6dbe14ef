import { hash } from 'node:crypto'
import type { AgentFrame } from '@windlass/shared/wire/agent.ts'
import type { Session } from './session.ts'
import * as store from './store.ts'

type Facts = Pick<Extract<AgentFrame, { t: 'heartbeat' }>, 'slots' | 'facts'>

const KEYS = ['slots', 'facts'] as const

/**
 * Stores what an agent says of itself with its heartbeats, behind their answers: it holds up no lease. What could not
 * be stored, as when somebody holds the row, is tried again with the next heartbeat, and what this connection said last
 * is not stored again. An org has one such statement at a time: those of 900 agents with each heartbeat had all
 * connections to the database, and wrote the rows that the heartbeats of all orgs write, so that others waited for 3 s.
 */
export function createSelfNotes(session: Session, failed: (error: unknown) => void): (said: Facts) => void {
  const { deps, runner } = session
  /** Digests: facts may have 20 KB. */
  const stored = new Map<keyof Facts, string>()
  const wanted: Facts = {}
  let isUnderWay = false

  async function storeNews(): Promise<void> {
    const leaveSeat = await deps.sockets.selfNotes.take(runner.orgId)
    const news = { ...wanted }
    const { connection } = session
    // Should this fail, nobody knows what is there.
    for (const key of KEYS) if (news[key] !== undefined) stored.delete(key)
    try {
      if (session.isOver || !(await store.noteFacts(deps.db, { id: runner.id, connection }, news))) return
    } finally {
      leaveSeat()
    }
    for (const key of KEYS) {
      if (news[key] === undefined) continue
      stored.set(key, digest(news[key]))
      if (wanted[key] === news[key]) delete wanted[key]
    }
    // What it can do now may fit to what waits.
    deps.dispatchers.poke(runner.poolId)
  }

  return ({ slots, facts }) => {
    if (slots !== undefined) wanted.slots = slots
    if (facts) wanted.facts = facts
    // What is under way may be another value than what was stored last.
    if (isUnderWay) return
    for (const key of KEYS) {
      if (wanted[key] !== undefined && digest(wanted[key]) === stored.get(key)) delete wanted[key]
    }
    if (Object.keys(wanted).length === 0) return
    isUnderWay = true
    void storeNews()
      .catch(failed)
      .finally(() => (isUnderWay = false))
  }
}

const digest = (value: unknown) => hash('sha256', JSON.stringify(value), 'base64url')
