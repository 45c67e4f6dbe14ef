/**
 * What a workflow becomes, in the transaction of whoever decides it and behind the lock of its row. What hangs on a
 * workflow (its schedules, its webhook, the filters of connections) is settled here, so that neither is without the
 * other.
 */
import type { OrgId, WorkflowId } from '@windlass/shared/ids.ts'
import type { Descriptor } from '@windlass/shared/model/descriptor.ts'
import type { Tx } from '../db/client.ts'
import { removeSchedules, restSchedules, takeOver } from '../schedules/descriptor.ts'
import { purgeInbound, settleInbound } from '../inbound/provision.ts'
import * as store from './store-lifecycle.ts'

export interface Which {
  orgId: OrgId
  workflowId: WorkflowId
}

/** This version is what triggers run from now on: after a deploy, and when one is rolled back or forward. */
export async function makeCurrent(
  tx: Tx,
  { orgId, workflowId, version, descriptor }: Which & { version: number; descriptor: Descriptor },
): Promise<void> {
  const { name, description } = descriptor
  await store.setCurrent(tx, { orgId, workflowId, version, name, description })
  await takeOver(tx, { orgId, workflowId }, descriptor.schedules)
  await settleInbound(tx, { orgId, workflowId }, descriptor)
}

/** No run starts any more; those that exist go on. */
export async function makeDisabled(tx: Tx, which: Which, by: string): Promise<void> {
  await store.setDisabled(tx, which, by)
}

export async function makeEnabled(tx: Tx, which: Which): Promise<void> {
  await store.setEnabled(tx, which)
}

/** Soft: its slug is free, and everything that hangs on it rests until it is restored. Runs that exist go on. */
export async function makeDeleted(tx: Tx, which: Which, by: string): Promise<void> {
  await store.setDeleted(tx, which, by)
  await restSchedules(tx, which, true)
}

/** As it was, under its slug or another. */
export async function makeRestored(tx: Tx, which: Which, slug: string): Promise<void> {
  await store.setRestored(tx, which, slug)
  await restSchedules(tx, which, false)
}

/** Gone for good, with everything that hangs on it. What its runs are shown with stays for as long as there are any. */
export async function makePurged(tx: Tx, which: Which): Promise<void> {
  await removeSchedules(tx, which)
  await purgeInbound(tx, which)
  if (await store.hasRuns(tx, which)) await store.setPurged(tx, which)
  else await store.forget(tx, which)
}
