import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createIoSchemaReader } from '../../workflows/io-schema.ts'
import { filesOf } from '../_kit/workflow-files.ts'

test('nothing of this machine can be reached through an import or a reference', async () => {
  const reader = createIoSchemaReader()
  const here = import.meta.filename
  const { inputSchema } = await reader.read(
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
  await reader.close()
})

test('the types of the SDK are at hand', async () => {
  const reader = createIoSchemaReader()
  const source = `import type { RunContext } from 'windlass'
    export const run = (input: unknown, context: RunContext) => ({ id: context.runId, attempt: context.attempt })`
  const { outputSchema, warnings } = await reader.read(filesOf({ 'index.ts': source }), 'index.ts')
  const properties = { id: { type: 'string' }, attempt: { type: 'number' } }
  assert.deepEqual(outputSchema, { type: 'object', properties, required: ['id', 'attempt'] })
  assert.deepEqual(warnings, [])
  await reader.close()
})
