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

const warningsOf = (contents: Record<string, string>, entry = 'index.ts') =>
  deriveIoSchemas(filesOf(contents), entry).warnings.map(({ message, file }) => `${file}: ${message}`)

test('an input whose type comes from an npm package is said to be unchecked, with the place and the package', () => {
  const inferred = `import { z } from 'zod'
    const Order = z.object({ id: z.string() })
    export async function run(input: { orders: z.infer<typeof Order>[]; free: any }) { return input.free }`
  const [warning, ...others] = warningsOf({ 'index.ts': inferred })
  assert.match(warning!, /^index\.ts: the type of `input\.orders\[\]` comes from an npm package \(`zod`\)/)
  assert.deepEqual(others, [])
  const wrapped = `import { wrap } from '@acme/wrap/sub'
    export const run = wrap(async (input: { a: string }) => input.a)`
  assert.match(warningsOf({ 'index.ts': wrapped })[0]!, /the type of `run` comes from an npm package \(`@acme\/wrap`\)/)
  const own = `import { z } from 'zod'
    export async function run(input: { a: string; b: any }) { return z.parse(input) }`
  assert.deepEqual(warningsOf({ 'index.ts': own }), [])
})

test('nothing that only follows from the missing types of packages is called an error', () => {
  const program = `import { z } from 'zod'
    export const names = Object.values(z.things).map((each) => each.name)
    export const run = () => names.concat(mising)`
  assert.deepEqual(warningsOf({ 'index.ts': program }), ["index.ts: Cannot find name 'mising'."])
  const through = {
    'index.ts': `import { things } from './things'
      export const run = () => Object.values(things).map((each) => each.name)`,
    'things.ts': `import { z } from 'zod'
      export const things = z.things`,
  }
  assert.deepEqual(warningsOf(through), [])
  const jsx = `import { render } from '@react-email/render'
    export const run = async (input: { a: string }) => ({ html: await render(<p>{input.a}</p>) })`
  assert.deepEqual(warningsOf({ 'index.tsx': jsx }, 'index.tsx'), [])
})

test('types of a file without packages, or of packages that were sent with theirs, are checked as ever', () => {
  const wrong = `import { one } from './one'
    export const run = (input: { a: string }): number => one + input.a`
  const [warning] = warningsOf({ 'index.ts': wrong, 'one.ts': 'export const one = 1' })
  assert.match(warning!, /^index\.ts: Type 'string' is not assignable to type 'number'/)
  const typed = `import { one } from 'one'
    export const run = (): string => one`
  assert.match(warningsOf({ 'index.ts': typed, 'vendor/one.d.mts': 'export const one: number' })[0]!, /not assignable/)
})
