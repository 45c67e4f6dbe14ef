/** Pools, runners and queued runs as rows, where a test needs many of them and no coordinator. */
import { newId, type OrgId, type PoolId, type RunId, type RunnerId } from '@windlass/shared/ids.ts'
import type { Db } from '../../db/client.ts'
import { needsText } from '../../matching/needs.ts'
import { insertQueued, type NewRun } from '../../engine/store/new-runs.ts'

let pools = 0

export async function aPoolRow(db: Db, settings: object = {}): Promise<{ orgId: OrgId; poolId: PoolId }> {
  const [orgId, poolId] = [newId('org'), newId('pool')]
  const name = `pool-${++pools}`
  await db`insert into orgs (id, slug, name) values (${orgId}, ${`org-${pools}`}, ${name})`
  await db`
    insert into runner_pools (id, org_id, name, settings)
    values (${poolId}, ${orgId}, ${name}, ${JSON.stringify(settings)}::text::json)`
  return { orgId, poolId }
}

export interface RunnerAsk {
  slots?: number
  labels?: string[]
  state?: 'open' | 'cordoned' | 'draining' | 'revoked'
  capabilities?: string[]
}

/** A runner that asked for work a moment ago. */
export async function aRunnerRow(
  db: Db,
  { orgId, poolId }: { orgId: OrgId; poolId: PoolId },
  { slots = 1, labels = [], state = 'open', capabilities = [] }: RunnerAsk = {},
): Promise<RunnerId> {
  const id = newId('rnr')
  await db`
    insert into runners (id, org_id, pool_id, name, public_key, labels, slots, version, platform, capabilities,
                         last_poll_at, last_heartbeat_at)
    values (${id}, ${orgId}, ${poolId}, ${id.slice(-6)}, '{}', ${labels}, ${slots}, 'test', 'linux', ${capabilities},
            now(), now())`
  await db`insert into runner_intake (runner_id, state) values (${id}, ${state})`
  return id
}

export interface QueuedAsk {
  slots?: number
  labels?: string[]
  priority?: number
  concurrencyGroup?: string | null
}

/** Queued runs, in this order. */
export async function queuedRows(
  db: Db,
  { orgId, poolId }: { orgId: OrgId; poolId: PoolId },
  asks: readonly QueuedAsk[],
): Promise<RunId[]> {
  const runs = asks.map(({ slots = 1, labels = [], priority = 0, concurrencyGroup = null }): NewRun => {
    return {
      id: newId('run'),
      orgId,
      workflowId: newId('wf'),
      versionId: newId('ver'),
      poolId,
      triggerKind: 'api',
      triggerId: null,
      triggerActor: null,
      tick: null,
      environment: null,
      tags: [],
      priority,
      retryOf: null,
      parentRunId: null,
      parentEntry: null,
      rootRunId: null,
      depth: 0,
      delayMs: 0,
      queueTimeoutMs: null,
      wallTimeoutMs: null,
      concurrencyGroup,
      throttle: null,
      debounce: null,
      needs: needsText({ slots, labels }),
      input: 'null',
    }
  })
  await insertQueued(db, runs)
  return runs.map((run) => run.id)
}
