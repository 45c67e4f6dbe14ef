import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setTimeout as pause } from 'node:timers/promises'
import { createIoSchemaReader } from '../../workflows/io-schema.ts'
import { filesOf } from '../_kit/workflow-files.ts'

test('jobs that come at once are all answered', async () => {
  const reader = createIoSchemaReader()
  const read = async (n: number) =>
    (await reader.read(filesOf({ 'index.ts': `export const run = (): ${n} => ${n}` }), 'index.ts')).outputSchema
  const schemas = await Promise.all([1, 2, 3, 4].map(read))
  await reader.close()
  assert.deepEqual(
    schemas,
    [1, 2, 3, 4].map((n) => ({ const: n })),
  )
})

test('a stampede is told to come back, and it is no fault of what was sent', async () => {
  const reader = createIoSchemaReader({ maxWaiting: 1 })
  const files = filesOf({ 'index.ts': 'export const run = () => 1 as number' })
  const first = reader.read(files, 'index.ts')
  await assert.rejects(reader.read(files, 'index.ts'), { code: 'UNAVAILABLE', status: 503, message: /try again/ })
  assert.deepEqual((await first).outputSchema, { type: 'number' })
  await reader.close()
})

test('the thread ends when it is idle and starts again for the next job', async () => {
  const short = createIoSchemaReader({ idleMs: 50 })
  const files = filesOf({ 'index.ts': 'export const run = () => 1 as number' })
  assert.equal(short.isAwake(), false)
  await short.read(files, 'index.ts')
  assert.equal(short.isAwake(), true)
  await until(() => !short.isAwake())
  assert.deepEqual((await short.read(files, 'index.ts')).outputSchema, { type: 'number' })
  await short.close()
  assert.equal(short.isAwake(), false)
})

test('a job over its deadline is refused and the next one is done', async () => {
  const hasty = createIoSchemaReader({ deadlineMs: 1 })
  await assert.rejects(
    hasty.read(filesOf({ 'index.ts': 'export const run = () => 1' }), 'index.ts'),
    /take too much time to work out/,
  )
  assert.equal(hasty.isAwake(), false)
  await hasty.close()
})

test('types that eat the memory are refused, and the thread is there again for the next job', async () => {
  const small = createIoSchemaReader({ memoryMb: 128 })
  const hungry = `type Grow<T extends unknown[]> = T['length'] extends 900 ? T : Grow<[...T, { [K in T['length']]: T }]>
    type D = '0'|'1'|'2'|'3'|'4'|'5'|'6'|'7'|'8'|'9'
    type N = \`\${D}\${D}\${D}\${D}\`
    type Huge = { [K in N]: { [L in \`\${K}\${D}\`]: [K, L] } }
    export function run(input: Huge): Grow<[]> { throw 1 }`
  await assert.rejects(small.read(filesOf({ 'index.ts': hungry }), 'index.ts'), /take too much memory to work out/)
  const { outputSchema } = await small.read(
    filesOf({ 'index.ts': 'export const run = () => "x" as string' }),
    'index.ts',
  )
  assert.deepEqual(outputSchema, { type: 'string' })
  await small.close()
})

async function until(check: () => boolean) {
  const deadline = performance.now() + 5_000
  while (!check()) {
    if (performance.now() > deadline) throw new Error('waited 5 s in vain')
    await pause(10)
  }
}
