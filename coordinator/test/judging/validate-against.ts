import { compile } from '../../judging/compile.ts'
import type { Invalid } from '../../judging/invalid.ts'
import type { JsonSchema } from '../../workflows/json-schema.ts'

/** The worst thing about the value, or null when it fits. */
export function validateAgainst(schema: JsonSchema | boolean, value: unknown, root = ''): Invalid | null {
  return compile('derived', schema)(value, root)
}
