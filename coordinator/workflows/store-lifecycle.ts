import type { OrgId, WorkflowId } from '@windlass/shared/ids.ts'
import type { Tx } from '../db/client.ts'

interface Which {
  orgId: OrgId
  workflowId: WorkflowId
}

export interface Current extends Which {
  version: number
  name: string
  description: string
}

export async function setCurrent(tx: Tx, c: Current): Promise<void> {
  await tx`
    update workflows
    set version = ${c.version}, name = ${c.name}, description = ${c.description}, updated_at = now()
    where id = ${c.workflowId} and org_id = ${c.orgId}`
}

export async function setDisabled(tx: Tx, { orgId, workflowId }: Which, by: string): Promise<void> {
  await tx`
    update workflows
    set disabled_at = now(), disabled_by = ${by}
    where id = ${workflowId} and org_id = ${orgId}`
}

export async function setEnabled(tx: Tx, { orgId, workflowId }: Which): Promise<void> {
  await tx`
    update workflows
    set disabled_at = null, disabled_by = null
    where id = ${workflowId} and org_id = ${orgId}`
}
