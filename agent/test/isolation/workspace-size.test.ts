import assert from 'node:assert/strict'
import { mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import test from 'node:test'
import { within } from '@windlass/shared/time.ts'
import { watchSizes } from '../../isolation/workspace-size.ts'

const DEADLINE_MS = 30_000

test('files without a byte count as well, for the workspace that they lie in', async (t) => {
  const sizes = watchSizes()
  t.after(() => sizes.close())
  const [many, few] = ['many', 'few'].map((name) => {
    const folder = mkdtempSync(path.join(os.tmpdir(), `windlass-${name}-`))
    t.after(() => rmSync(folder, { recursive: true }))
    return folder
  })
  for (let n = 0; n < 3000; n++) writeFileSync(path.join(many!, String(n)), '')
  writeFileSync(path.join(few!, 'one'), '')
  const limitBytes = 1024 * 1024
  const onFull = t.mock.fn()
  sizes.watch({ workspace: few!, limitBytes, onFull })
  const found = new Promise<number>((resolve) => sizes.watch({ workspace: many!, limitBytes, onFull: resolve }))
  assert.ok((await within(DEADLINE_MS, found, 'nobody has looked')) > limitBytes)
  assert.equal(onFull.mock.callCount(), 0)
})
