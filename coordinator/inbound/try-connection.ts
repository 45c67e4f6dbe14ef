import type { ConnectionId } from '@windlass/shared/ids.ts'
import type { Caller } from '../actor.ts'
import type { Db } from '../db/client.ts'
import { ownedStates } from '../environments/owned-secrets.ts'
import { needConnection } from './connections.ts'
import { createEffort } from './rules/effort.ts'
import { decide, disabledConnection, topOf } from './rules/outcome.ts'
import { NO_SECRET } from './rules/signature.ts'
import { createSlices } from '../slices.ts'
import type { MatchRow, WantedRow } from './row.ts'
import * as store from './store.ts'

interface TestAsk {
  connection: ConnectionId
  event: string | null
  payload?: unknown
}

/** What a delivery would start, by event patterns and filters alone. Nothing is written. */
export async function testConnection(deps: { db: Db }, caller: Caller, ask: TestAsk) {
  const { id, name, enabled } = await needConnection(deps, caller, ask.connection)
  const state = (await ownedStates(deps.db, caller.orgId, [id])).get(id)
  const wanted = await store.wantedOf(deps.db, caller.orgId, name)
  const slugs = new Map(wanted.map(({ workflowId, slug }) => [workflowId, slug]))
  const matches = await matchesOf(wanted, ask)
  const hasSecret = state?.hasSecret ?? false
  const whole = wholeOf({ name, enabled, hasSecret }) ?? topOf(matches)
  return {
    hasSecret,
    enabled,
    ...whole,
    matches: matches.map(({ workflowId, outcome, reason }) => ({ workflow: slugs.get(workflowId)!, outcome, reason })),
  }
}

async function matchesOf(wanted: readonly WantedRow[], { event, payload = null }: TestAsk) {
  const slices = createSlices()
  const effort = createEffort()
  const found: Pick<MatchRow, 'workflowId' | 'outcome' | 'reason'>[] = []
  for (const [workflowId, entries] of Map.groupBy(wanted, (entry) => entry.workflowId)) {
    await slices()
    const decision = decide(entries, { event, payload }, effort)
    found.push('not' in decision ? decision.not : { workflowId, outcome: 'triggered', reason: null })
  }
  return found
}

function wholeOf({ name, enabled, hasSecret }: { name: string; enabled: boolean; hasSecret: boolean }) {
  if (!hasSecret) return { outcome: 'unverified' as const, reason: NO_SECRET }
  if (!enabled) return { outcome: 'disabled' as const, reason: disabledConnection(name) }
  return undefined
}
