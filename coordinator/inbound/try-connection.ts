import type { ConnectionId, OrgId } from '@windlass/shared/ids.ts'
import type { DeliveryOutcome } from '@windlass/shared/model/delivery.ts'
import type { Caller } from '../actor.ts'
import { ownedStates } from '../environments/owned-secrets.ts'
import { needConnection } from './connections.ts'
import { type DecideDeps, decisionsOf } from './decisions.ts'
import { disabledConnection, topOf } from './rules/outcome.ts'
import { NO_SECRET } from './rules/signature.ts'
import type { WantedRow } from './row.ts'
import { wantedOf, wantingOf, type WantingDeps, workflowsOf } from './wanting.ts'

interface TestAsk {
  connection: ConnectionId
  event: string | null
  payload?: unknown
}

/** What a delivery would start, by event patterns and filters alone. Nothing is written. */
export async function testConnection(deps: DecideDeps & WantingDeps, caller: Caller, ask: TestAsk) {
  const { id, name, enabled } = await needConnection(deps, caller, ask.connection)
  const state = (await ownedStates(deps.db, caller.orgId, [id])).get(id)
  const source = { orgId: caller.orgId, name }
  const wanting = await wantingOf(deps, source)
  const { tooMuch } = wanting
  const matches =
    tooMuch === undefined
      ? await matchesOf(deps, caller.orgId, { ...ask, wanted: await wantedOf(deps, source, wanting) })
      : (await workflowsOf(deps, source, wanting)).map(({ slug }) => ({
          workflow: slug,
          outcome: 'too_large' as const,
          reason: tooMuch,
        }))
  const hasSecret = state?.hasSecret ?? false
  const whole = wholeOf({ name, enabled, hasSecret }) ?? topOf(matches)
  return { hasSecret, enabled, ...whole, matches }
}

interface Match {
  workflow: string
  outcome: DeliveryOutcome
  reason: string | null
}

type Asked = TestAsk & { wanted: readonly WantedRow[] }

async function matchesOf(deps: DecideDeps, orgId: OrgId, { wanted, event, payload = null }: Asked): Promise<Match[]> {
  const slugs = new Map(wanted.map(({ workflowId, slug }) => [workflowId, slug]))
  const decisions = await decisionsOf(deps, { orgId, wanted, event, payload })
  return [...decisions].map(([workflowId, decision]) => {
    const { outcome, reason } = 'not' in decision ? decision.not : { outcome: 'triggered' as const, reason: null }
    return { workflow: slugs.get(workflowId)!, outcome, reason }
  })
}

function wholeOf({ name, enabled, hasSecret }: { name: string; enabled: boolean; hasSecret: boolean }) {
  if (!hasSecret) return { outcome: 'unverified' as const, reason: NO_SECRET }
  if (!enabled) return { outcome: 'disabled' as const, reason: disabledConnection(name) }
  return undefined
}
