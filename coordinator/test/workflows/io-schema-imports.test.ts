import assert from 'node:assert/strict'
import { test } from 'node:test'
import { deriveIoSchemas } from '../../workflows/io-schema-derive.ts'
import { filesOf } from '../_kit/workflow-files.ts'

test('nothing of this machine can be reached through an import or a reference', async () => {
  const here = import.meta.filename
  const { inputSchema } = deriveIoSchemas(
    filesOf({
      'index.ts': `/// <reference path="${here}" />
    import type { secret } from '${here}'
    import type { other } from '../../../../../../../..${here}'
    import type { third } from '../@windlass/text-imports'
    export function run(input: { a: secret; b: other; c: third; d: typeof import('/etc/hostname') }) {}`,
    }),
    'index.ts',
  )
  assert.deepEqual(inputSchema, { type: 'object', properties: { a: {}, b: {}, c: {}, d: {} } })
})

test('the types of the SDK are at hand', async () => {
  const source = `import type { RunContext } from 'windlass'
    export const run = (input: unknown, context: RunContext) => ({ id: context.runId, attempt: context.attempt })`
  const { outputSchema, warnings } = deriveIoSchemas(filesOf({ 'index.ts': source }), 'index.ts')
  const properties = { id: { type: 'string' }, attempt: { type: 'number' } }
  assert.deepEqual(outputSchema, { type: 'object', properties, required: ['id', 'attempt'] })
  assert.deepEqual(warnings, [])
})
