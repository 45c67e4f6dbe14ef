import type { WorkflowId } from '@windlass/shared/ids.ts'
import type { Descriptor } from '@windlass/shared/model/descriptor.ts'
import { canonicalHash } from '../../canonical-hash.ts'

/** Runs whose values share these first bytes of their hash would share a group: 96 bits rule that out. */
const HASH_CHARACTERS = 16

/** Whom a run is counted with; null where nothing is limited. Runs whose input lacks the field are a group of their own. */
export async function groupOf(
  workflowId: WorkflowId,
  rule: Descriptor['concurrency'],
  input: () => unknown,
): Promise<string | null> {
  if (rule === null) return null
  if (rule.key === null) return workflowId
  const hash = await canonicalHash(valueAt(input(), rule.key))
  return `${workflowId}/${hash.digest('base64url').slice(0, HASH_CHARACTERS)}`
}

/** The value at `input.customer.id`. */
function valueAt(input: unknown, path: string): unknown {
  let value = input
  for (const name of path.split('.').slice(1)) {
    if (typeof value !== 'object' || value === null || !Object.hasOwn(value, name)) return undefined
    value = (value as Record<string, unknown>)[name]
  }
  return value
}
