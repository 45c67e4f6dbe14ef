import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { Fault } from '@windlass/shared/errors.ts'
import type { SourceFile } from '@windlass/shared/model/workflow.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import { aCoordinator, type TestCoordinator } from '../_kit/coordinator.ts'
import { filesOf } from '../_kit/workflow-files.ts'

let c: TestCoordinator

before(async () => {
  c = await aCoordinator()
})
after(() => c.stop())

async function refusedWith(act: Promise<unknown>): Promise<Fault> {
  const error = await act.then(
    () => undefined,
    (error: unknown) => error,
  )
  assert.ok(error instanceof Fault || (error instanceof Error && 'detail' in error), String(error))
  return error as Fault
}

const create = (sent: SourceFile[]) => refusedWith(c.call(ops.workflows.create, { org: c.org, files: sent }))
const TEXT = 'export function run() { return 1 }'
const files = (slug: string) => filesOf({ 'workflow.jsonc': JSON.stringify({ slug }), 'index.ts': TEXT })

test('a file that is refused is named by its place in the request', async () => {
  const plain = files('named')
  const at = plain.length
  for (const [extra, path] of [
    [{ path: '../up.ts', content: '' }, `files[${at}].path`],
    [{ path: 'INDEX.ts', content: TEXT }, `files[${at}].path`],
    [{ path: 'cut.md', content: 'much … [cut by Windlass]' }, `files[${at}].content`],
  ] as const)
    assert.equal((await create([...plain, extra])).detail?.path, path)
  const broken = plain.map((file) => (file.path === 'index.ts' ? { ...file, content: 'export const = 1' } : file))
  const { detail } = await create(broken)
  const index = plain.findIndex(({ path }) => path === 'index.ts')
  assert.deepEqual([detail?.path, detail?.['file'], detail?.['line']], [`files[${index}].content`, 'index.ts', 1])
})

test('of changes the one that is at fault is named, and all of them where a file that stays is', async () => {
  const { workflow } = await c.call(ops.workflows.create, {
    org: c.org,
    files: [
      { path: 'workflow.jsonc', content: '{"slug": "changed"}' },
      { path: 'index.ts', content: "import './lib.ts'\n" + TEXT },
      { path: 'lib.ts', content: 'export const one = 1' },
    ],
  })
  const change = (...changes: { path: string; content: string | null }[]) =>
    refusedWith(c.call(ops.workflows.update, { org: c.org, workflow: workflow.id, changes, baseVersion: 1 }))
  const note = { path: 'NOTE.md', content: 'n' }
  const broken = await change(note, { path: 'lib.ts', content: 'export const = 1' })
  assert.equal(broken.detail?.path, 'changes[1].content')
  const lost = await change(note, { path: 'lib.ts', content: null })
  assert.deepEqual([lost.detail?.path, lost.detail?.['file']], ['changes', 'index.ts'])
})

test('files of more than 50 MiB are too large, with both sizes', async () => {
  const half = 'x'.repeat(26 * 1024 * 1024)
  const sent = [...files('large'), { path: 'a.txt', content: half }, { path: 'b.txt', content: half }]
  const { code, status, detail } = await create(sent)
  const bytes = sent.reduce((sum, { content }) => sum + Buffer.byteLength(content), 0)
  assert.deepEqual([code, status], ['PAYLOAD_TOO_LARGE', 413])
  assert.deepEqual(detail, { path: 'files', bytes, limitBytes: 50 * 1024 * 1024 })
})
