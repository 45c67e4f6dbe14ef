import type { JsonSchema } from '../../workflows/json-schema.ts'
import { type Invalid, validatorOf } from '../../workflows/validate.ts'

/** The worst thing about the value, or null when it fits. */
export function validateAgainst(schema: JsonSchema | boolean, value: unknown): Invalid | null {
  return validatorOf(schema)?.(value) ?? null
}
