import { DESCRIPTOR_FILE, DescriptorFile } from '@windlass/shared/model/descriptor.ts'
import { z } from 'zod'

/**
 * The JSON Schema of `workflow.jsonc`, for editors. A deploy judges by the schema that this one is made from, and is stricter where
 * JSON Schema has no words: bounds of durations, names of time zones.
 */
export function workflowFileSchema(): Record<string, unknown> {
  const { $schema, ...rest } = z.toJSONSchema(DescriptorFile, { io: 'input', override: plainer })
  return {
    $schema,
    title: DESCRIPTOR_FILE,
    description: 'Describes a Windlass workflow. Times are "30s", "5m", "1h", "2d" or milliseconds.',
    ...rest,
    // Editors of `.jsonc` know comments; that commas may trail they have to be told.
    allowTrailingCommas: true,
  }
}

function plainer({ jsonSchema }: { jsonSchema: z.core.JSONSchema.BaseSchema }): void {
  if (jsonSchema.maximum === Number.MAX_SAFE_INTEGER) delete jsonSchema.maximum
  if (jsonSchema.minimum === Number.MIN_SAFE_INTEGER) delete jsonSchema.minimum
}
