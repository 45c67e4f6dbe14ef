import assert from 'node:assert/strict'
import fs from 'node:fs'
import { syncBuiltinESMExports } from 'node:module'
import os from 'node:os'
import path from 'node:path'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { keepWorkspaces } from '../../../run/hosts/workspace.ts'

function someWorkspaces(t: TestContext) {
  const root = fs.mkdtempSync(path.join(os.tmpdir(), 'windlass-workspaces-'))
  t.after(() => fs.rmSync(root, { recursive: true }))
  return keepWorkspaces(root)
}

/** Counts the names that are read synchronously until the test is over. */
function countNames(t: TestContext): () => number {
  const all = t.mock.method(fs, 'readdirSync')
  const single = t.mock.method(fs.Dir.prototype, 'readSync')
  syncBuiltinESMExports()
  t.after(() => {
    t.mock.restoreAll()
    syncBuiltinESMExports()
  })
  return () => single.mock.callCount() + all.mock.calls.reduce((sum, { result }) => sum + (result?.length ?? 0), 0)
}

test('a workspace in which others have had their way serves no second run, however empty it is', async (t) => {
  const workspaces = someWorkspaces(t)
  const folder = workspaces.take()
  // Its number is nobody else's while it is open.
  const fd = fs.openSync(folder, 'r')
  t.after(() => fs.closeSync(fd))
  await workspaces.giveBack(folder, { isTrusted: false })
  assert.equal(fs.existsSync(folder), false)
  assert.notEqual(fs.statSync(workspaces.take()).ino, fs.fstatSync(fd).ino)
})

test('a workspace of a program that acts as the agent serves the next run when it is as it was', async (t) => {
  const workspaces = someWorkspaces(t)
  const changes: ((folder: string) => void)[] = [
    (folder) => fs.writeFileSync(path.join(folder, 'file'), ''),
    (folder) => fs.writeFileSync(path.join(folder, 'tmp', 'file'), ''),
    (folder) => fs.rmdirSync(path.join(folder, 'tmp')),
    (folder) => fs.renameSync(path.join(folder, 'tmp'), path.join(folder, 'temp')),
    (folder) => fs.chmodSync(folder, 0o755),
    (folder) => fs.chmodSync(path.join(folder, 'tmp'), 0o1777),
  ]
  const folder = workspaces.take()
  await workspaces.giveBack(folder, { isTrusted: true })
  assert.equal(workspaces.take(), folder)
  for (const change of changes) {
    const changed = workspaces.take()
    change(changed)
    await workspaces.giveBack(changed, { isTrusted: true })
    assert.equal(fs.existsSync(changed), false, String(change))
  }
})

test('of what a run has left in its folder two names are looked at, however many there are', async (t) => {
  const workspaces = someWorkspaces(t)
  const folder = workspaces.take()
  for (let n = 0; n < 1000; n++) fs.writeFileSync(path.join(folder, String(n)), '')
  const names = countNames(t)
  assert.equal(workspaces.isUntouched(folder), false)
  assert.ok(names() <= 2, `${names()} names`)
})
