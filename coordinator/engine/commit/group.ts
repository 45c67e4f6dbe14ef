import type { OrgId, WorkflowId } from '@windlass/shared/ids.ts'
import type { Descriptor } from '@windlass/shared/model/descriptor.ts'
import { canonicalHash } from '../../canonical-hash.ts'
import { writeGroups } from '../rules/groups.ts'

/** Runs whose values share these first bytes of their hash would share a group: 96 bits rule that out. */
const HASH_CHARACTERS = 16

/** The workflow whose runs are grouped. */
interface Owner {
  orgId: OrgId
  workflowId: WorkflowId
}

/** The groups in which a run is counted; null where nothing is limited. */
export async function groupsOf(
  owner: Owner,
  rule: Descriptor['concurrency'],
  input: () => unknown,
): Promise<string | null> {
  if (rule === null) return null
  const limits = [rule].flat()
  const groups = limits.map(async ({ limit, key }) => ({ limit, key: await keyBy(owner, key, input) }))
  return writeGroups(await Promise.all(groups))
}

/**
 * What the runs of a workflow have in common whose inputs have the same value in a field; those that lack it have that in
 * common.
 */
export async function keyBy({ orgId, workflowId }: Owner, field: string | null, input: () => unknown): Promise<string> {
  if (field === null) return workflowId
  const path = field.split('.').slice(1)
  const hash = await canonicalHash(valueAt(input(), path), orgId)
  return `${workflowId}/${path.join('.')}/${hash.digest('base64url').slice(0, HASH_CHARACTERS)}`
}

/** The value at `input.customer.id`. */
function valueAt(input: unknown, path: readonly string[]): unknown {
  let value = input
  for (const name of path) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = (value as Record<string, unknown>)[name]
  }
  return value
}
