import assert from 'node:assert/strict'
import { spawnSync } from 'node:child_process'
import { chmodSync, mkdirSync, mkdtempSync, writeFileSync } from 'node:fs'
import os from 'node:os'
import path from 'node:path'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { within } from '@windlass/shared/time.ts'
import { watchSizes } from '../../isolation/workspace-size.ts'
import { NEEDS_ROOT } from './requirements.ts'

const DEADLINE_MS = 30_000
const MIB = 1024 * 1024
const PROGRAMS = path.resolve(import.meta.dirname, '../programs')
/** Of no range that a test has. */
const UID = 650_006

function aFolder(t: TestContext): string {
  const folder = mkdtempSync(path.join(os.tmpdir(), 'windlass-size-'))
  t.after(() => spawnSync('rm', ['-rf', folder]))
  return folder
}

/** Resolves when this folder is said to have more than that; the test fails when one with a single file is. */
async function isFull(t: TestContext, folder: string, limitBytes: number): Promise<number> {
  const sizes = watchSizes()
  t.after(() => sizes.close())
  const few = aFolder(t)
  writeFileSync(path.join(few, 'one'), '')
  const onFull = t.mock.fn()
  sizes.watch({ workspace: few, limitBytes, onFull })
  const found = new Promise<number>((resolve) => sizes.watch({ workspace: folder, limitBytes, onFull: resolve }))
  const bytes = await within(DEADLINE_MS, found, 'nobody has seen it')
  assert.equal(onFull.mock.callCount(), 0)
  return bytes
}

test('files without a byte count as well, for the workspace that they lie in', async (t) => {
  const many = aFolder(t)
  for (let n = 0; n < 3000; n++) writeFileSync(path.join(many, String(n)), '')
  assert.ok((await isFull(t, many, MIB)) > MIB)
})

test('what lies deeper than a path may be long counts as more than there may be', async (t) => {
  const deep = aFolder(t)
  const made = spawnSync(process.execPath, [path.join(PROGRAMS, 'digs-deep.mjs'), deep, '60'])
  assert.equal(made.status, 0, String(made.stderr))
  assert.equal(await isFull(t, deep, MIB), Infinity)
})

test('what has a name that is no text counts, and so do the folders among it', async (t) => {
  const odd = aFolder(t)
  const inner = Buffer.concat([Buffer.from(`${odd}/`), Buffer.from([0xff])])
  mkdirSync(inner)
  writeFileSync(Buffer.concat([inner, Buffer.from([0x2f, 0xfe])]), Buffer.alloc(2 * MIB, 'x'))
  assert.ok((await isFull(t, odd, MIB)) > MIB)
})

/** As an agent without root does: to root nothing is closed. */
async function withoutRoot<T>(act: () => Promise<T>): Promise<T> {
  const isRoot = process.geteuid?.() === 0
  if (isRoot) process.seteuid?.(UID)
  try {
    return await act()
  } finally {
    if (isRoot) process.seteuid?.(0)
  }
}

test('what its own user has closed to the agent counts as more than there may be', (t) =>
  withoutRoot(async () => {
    const closed = aFolder(t)
    mkdirSync(path.join(closed, 'inner'), { mode: 0 })
    assert.equal(await isFull(t, closed, MIB), Infinity)
  }))

test('a folder of somebody else, as of a container, counts as nothing', { skip: NEEDS_ROOT }, async (t) => {
  const folder = aFolder(t)
  mkdirSync(path.join(folder, 'of-a-container'), { mode: 0o700 })
  chmodSync(folder, 0o755)
  writeFileSync(path.join(folder, 'file'), Buffer.alloc(2 * MIB, 'x'))
  const bytes = await withoutRoot(() => isFull(t, folder, MIB))
  assert.ok(bytes > MIB && bytes < 3 * MIB, `${bytes} bytes`)
})
