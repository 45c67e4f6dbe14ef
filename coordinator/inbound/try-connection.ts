import type { ConnectionId } from '@windlass/shared/ids.ts'
import type { DeliveryOutcome } from '@windlass/shared/model/delivery.ts'
import type { Caller } from '../actor.ts'
import type { Db } from '../db/client.ts'
import { ownedStates } from '../environments/owned-secrets.ts'
import { needConnection } from './connections.ts'
import { createEffort } from './rules/effort.ts'
import { decide, disabledConnection, topOf } from './rules/outcome.ts'
import { NO_SECRET } from './rules/signature.ts'
import { createSlices } from '../slices.ts'
import type { WantedRow } from './row.ts'
import * as store from './store.ts'
import { wantingOf } from './wanting.ts'

interface TestAsk {
  connection: ConnectionId
  event: string | null
  payload?: unknown
}

/** What a delivery would start, by event patterns and filters alone. Nothing is written. */
export async function testConnection(deps: { db: Db }, caller: Caller, ask: TestAsk) {
  const { id, name, enabled } = await needConnection(deps, caller, ask.connection)
  const state = (await ownedStates(deps.db, caller.orgId, [id])).get(id)
  const { workflows, tooMuch } = await wantingOf(deps, { orgId: caller.orgId, name })
  const matches =
    tooMuch === undefined
      ? await matchesOf(await store.wantedOf(deps.db, caller.orgId, name), ask)
      : workflows.map(({ slug }) => ({ workflow: slug, outcome: 'too_large' as const, reason: tooMuch }))
  const hasSecret = state?.hasSecret ?? false
  const whole = wholeOf({ name, enabled, hasSecret }) ?? topOf(matches)
  return { hasSecret, enabled, ...whole, matches }
}

interface Match {
  workflow: string
  outcome: DeliveryOutcome
  reason: string | null
}

async function matchesOf(wanted: readonly WantedRow[], { event, payload = null }: TestAsk): Promise<Match[]> {
  const slices = createSlices()
  const effort = createEffort()
  const found: Match[] = []
  for (const entries of Map.groupBy(wanted, (entry) => entry.workflowId).values()) {
    await slices()
    const decision = decide(entries, { event, payload }, effort)
    const { outcome, reason } = 'not' in decision ? decision.not : { outcome: 'triggered' as const, reason: null }
    found.push({ workflow: entries[0]!.slug, outcome, reason })
  }
  return found
}

function wholeOf({ name, enabled, hasSecret }: { name: string; enabled: boolean; hasSecret: boolean }) {
  if (!hasSecret) return { outcome: 'unverified' as const, reason: NO_SECRET }
  if (!enabled) return { outcome: 'disabled' as const, reason: disabledConnection(name) }
  return undefined
}
