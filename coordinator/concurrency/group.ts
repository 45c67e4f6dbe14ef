import { hash } from 'node:crypto'
import type { WorkflowId } from '@windlass/shared/ids.ts'
import type { Descriptor } from '@windlass/shared/model/descriptor.ts'
import { canonicalJson } from '@windlass/shared/canonical-json.ts'

/** Runs whose values share these first bytes of their hash would share a group: 96 bits rule that out. */
const HASH_CHARACTERS = 16

/** Whom a run is counted with; null where nothing is limited. Runs whose input lacks the field are a group of their own. */
export function groupOf(workflowId: WorkflowId, rule: Descriptor['concurrency'], input: unknown): string | null {
  if (rule === null) return null
  if (rule.key === null) return workflowId
  const text = canonicalJson(valueAt(input, rule.key)) ?? 'undefined'
  return `${workflowId}/${hash('sha256', text, 'base64url').slice(0, HASH_CHARACTERS)}`
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
