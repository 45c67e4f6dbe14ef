import type { OrgId, RunId, WorkflowId } from '@windlass/shared/ids.ts'
import type { Db, Tx } from '../db/client.ts'
import { unnest } from '../db/unnest.ts'

/** A key of a delivery that is about to start a run; a repetition has it again. */
export interface KeyRow {
  orgId: OrgId
  workflowId: WorkflowId
  /** SHA-256 in hex. */
  key: string
  runId: RunId
  ttlMs: number
}

/**
 * Takes keys for runs, and answers which run holds each. Waits for a transaction that is taking the same key; if that
 * one fails the key is free. All take them in one order, so that no two wait for each other. An expired key is free.
 */
export async function takeKeys(tx: Tx, keys: readonly KeyRow[]): Promise<Map<string, RunId>> {
  const given = unnest(tx, 't', keys, {
    orgId: 'text',
    workflowId: 'text',
    key: 'text',
    runId: 'text',
    ttlMs: 'float8',
    n: 'ordinality',
  })
  await tx`
    insert into delivery_keys (org_id, workflow_id, key, run_id, expires_at)
    select org_id, workflow_id, decode(key, 'hex'), run_id, now() + ttl_ms * interval '1 millisecond'
    from (
      select distinct on (org_id, workflow_id, key) * from ${given} order by org_id, workflow_id, key, n
    ) firsts
    order by org_id, workflow_id, key
    on conflict (org_id, workflow_id, key) do update
    set run_id = excluded.run_id, expires_at = excluded.expires_at
    where delivery_keys.expires_at <= now()`
  const held = await tx<{ workflowId: WorkflowId; key: string; runId: RunId }[]>`
    select k.workflow_id, encode(k.key, 'hex') as key, k.run_id
    from ${unnest(tx, 't', keys, { orgId: 'text', workflowId: 'text', key: 'text' })}
    join delivery_keys k on k.org_id = t.org_id and k.workflow_id = t.workflow_id and k.key = decode(t.key, 'hex')`
  return new Map(held.map((row) => [heldAs(row), row.runId]))
}

export const heldAs = ({ workflowId, key }: Pick<KeyRow, 'workflowId' | 'key'>) => `${workflowId} ${key}`

/** Frees the keys of runs that are not made after all: another of their keys was taken. */
export async function giveBack(tx: Tx, keys: readonly KeyRow[]): Promise<void> {
  if (keys.length === 0) return
  await tx`
    delete from delivery_keys k
    using ${unnest(tx, 't', keys, { orgId: 'text', workflowId: 'text', key: 'text', runId: 'text' })}
    where k.org_id = t.org_id and k.workflow_id = t.workflow_id and k.key = decode(t.key, 'hex')
      and k.run_id = t.run_id`
}

/**
 * A repetition of a call that was merged is answered with the run that it was merged into. By the keys themselves: a
 * workflow has as many as it had deliveries in a week.
 */
export async function pointTo(tx: Tx, keys: readonly KeyRow[], runId: RunId): Promise<void> {
  if (keys.length === 0) return
  await tx`
    update delivery_keys k
    set run_id = ${runId}
    from ${unnest(tx, 't', keys, { orgId: 'text', workflowId: 'text', key: 'text', runId: 'text' })}
    where k.org_id = t.org_id and k.workflow_id = t.workflow_id and k.key = decode(t.key, 'hex')
      and k.run_id = t.run_id`
}

/** Removed in one statement: some tens of milliseconds of it. */
const PORTION = 5000

export async function removeExpiredKeys(db: Db): Promise<void> {
  for (;;) {
    const { count } = await db`
      delete from delivery_keys
      where ctid = any(array(select ctid from delivery_keys where expires_at <= now() limit ${PORTION}))
        and expires_at <= now()`
    if (count < PORTION) return
  }
}
