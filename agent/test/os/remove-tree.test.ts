import assert from 'node:assert/strict'
import { spawn, spawnSync } from 'node:child_process'
import { once } from 'node:events'
import { chmodSync, mkdirSync, mkdtempSync, readdirSync, symlinkSync, writeFileSync } from 'node:fs'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { eachEntry } from '../../os/each-entry.ts'
import { removeTree } from '../../os/remove-tree.ts'
import { NEEDS_ROOT } from '../isolation/requirements.ts'
import { FormerWorkspaces } from '../../run/hosts/former-workspaces.ts'
import { keepWorkspaces } from '../../run/hosts/workspace.ts'

/** A folder of ours with one that a program has had. */
function aParent(t: TestContext): { parent: string; folder: string } {
  const parent = mkdtempSync(path.join(os.tmpdir(), 'windlass-tree-'))
  t.after(() => spawnSync('rm', ['-rf', parent]))
  const folder = path.join(parent, '1')
  mkdirSync(folder)
  return { parent, folder }
}

/** Removes all workspaces, as the start of an agent has it done. Answers what stayed. */
async function emptied(root: string): Promise<string[]> {
  const stayed: string[] = []
  const former = new FormerWorkspaces(root, (folder, error) => stayed.push(`${folder} ${String(error)}`))
  await former.setAside()
  await former.removed()
  return stayed
}

const PROGRAMS = path.resolve(import.meta.dirname, '../programs')

test('folders deeper than a path may be long are removed', async (t) => {
  const { parent, folder } = aParent(t)
  const made = spawnSync(process.execPath, [path.join(PROGRAMS, 'digs-deep.mjs'), folder, '60'])
  assert.equal(made.status, 0, String(made.stderr))
  await removeTree(folder)
  assert.deepEqual(readdirSync(parent), [])
})

test('what is closed to its owner and what has a name that is no text goes too', async (t) => {
  const { parent, folder } = aParent(t)
  for (const [name, mode] of [
    ['closed', 0],
    ['unwritable', 0o500],
    ['unsearchable', 0o600],
  ] as const) {
    mkdirSync(path.join(folder, name, 'more'), { recursive: true })
    writeFileSync(path.join(folder, name, 'file'), '')
    chmodSync(path.join(folder, name), mode)
  }
  writeFileSync(Buffer.concat([Buffer.from(`${folder}/`), Buffer.from([0xff, 0xfe])]), '')
  chmodSync(folder, 0)
  await removeTree(folder)
  assert.deepEqual(readdirSync(parent), [])
})

test('a link goes, and what it leads to stays', async (t) => {
  const { parent, folder } = aParent(t)
  mkdirSync(path.join(parent, 'theirs'))
  writeFileSync(path.join(parent, 'theirs/file'), 'theirs')
  symlinkSync(path.join(parent, 'theirs'), path.join(folder, 'link'))
  symlinkSync(path.join(parent, 'nowhere'), path.join(folder, 'dangling'))
  await removeTree(folder)
  assert.deepEqual(readdirSync(parent), ['theirs'])
  await removeTree(path.join(parent, 'theirs/file'))
  assert.deepEqual(readdirSync(path.join(parent, 'theirs')), [])
})

test('a program that puts a link in the place of a folder again and again leads nowhere', async (t) => {
  const { parent, folder } = aParent(t)
  const theirs = path.join(parent, 'theirs')
  mkdirSync(theirs)
  for (let n = 0; n < 20; n++) writeFileSync(path.join(theirs, `${n}`), 'theirs')
  const swapper = spawn(process.execPath, [path.join(PROGRAMS, 'swaps-links.mjs'), folder, theirs])
  t.after(() => swapper.kill('SIGKILL'))
  await once(swapper.stdout, 'data')
  // It makes the folder anew each time. What it adds too fast for us is no failure here.
  for (let round = 0; round < 300; round++) await removeTree(folder).catch(() => {})
  assert.equal(readdirSync(theirs).length, 20)
})

test('a workspace in which a program has dug deep is gone when it is given back, and keeps no agent from starting', async (t) => {
  const { parent } = aParent(t)
  const root = path.join(parent, 'workspaces')
  await emptied(root)
  const workspaces = keepWorkspaces(root)
  const [given, left] = [workspaces.take(), workspaces.take()]
  for (const folder of [given, left]) spawnSync(process.execPath, [path.join(PROGRAMS, 'digs-deep.mjs'), folder, '60'])
  await workspaces.giveBack(given, { isTrusted: true })
  assert.deepEqual(readdirSync(root), [path.basename(left)])
  await emptied(root)
  assert.deepEqual(readdirSync(root), [])
})

test(
  'a folder that others fill as fast as it is emptied is closed to them and goes',
  { skip: NEEDS_ROOT },
  async (t) => {
    const { parent, folder } = aParent(t)
    chmodSync(parent, 0o755)
    chmodSync(folder, 0o777)
    const fill = 'cd "$1" && n=0; while :; do : > $n; n=$((n + 1)); echo; done'
    const args = ['--reuid=650003', '--regid=650003', '--clear-groups', '--', '/bin/sh', '-c', fill, 'fill', folder]
    const other = spawn('setpriv', args, { stdio: ['ignore', 'pipe', 'ignore'] })
    t.after(() => other.kill('SIGKILL'))
    await once(other.stdout, 'data')
    other.stdout.resume()
    await removeTree(folder)
    assert.deepEqual(readdirSync(parent), [])
  },
)

test('a workspace that cannot be removed keeps no agent from its start', async (t) => {
  const { parent } = aParent(t)
  const other = path.join(parent, '2')
  mkdirSync(other)
  const rmdir = fs.rmdir
  t.mock.method(fs, 'rmdir', (target: string) =>
    target === other ? Promise.reject(new Error('EPERM')) : rmdir(target),
  )
  const rename = fs.rename
  t.mock.method(fs, 'rename', (from: string, to: string) =>
    from === other ? Promise.reject(new Error('EBUSY')) : rename(from, to),
  )
  assert.deepEqual(await emptied(parent), [`${other} Error: EPERM`])
})

test('of a folder with very many entries some are taken at a time', async (t) => {
  const { parent, folder } = aParent(t)
  for (let n = 0; n < 1000; n++) writeFileSync(path.join(folder, String(n)), '')
  let [now, most] = [0, 0]
  const taken = new Set<string>()
  const act = async (entry: Buffer) => {
    most = Math.max(most, ++now)
    await new Promise(setImmediate)
    taken.add(String(entry))
    now -= 1
    if (String(entry).endsWith('/7')) throw new Error('seven')
  }
  assert.equal(await eachEntry(parent, act), 1)
  await assert.rejects(eachEntry(folder, act), /seven/)
  assert.equal(taken.size, 1001)
  assert.ok(most <= 64, `${most} at a time`)
  assert.equal(await eachEntry(folder, () => Promise.resolve(), { most: 300 }), 300)
})

test('an entry that cannot be taken, while the folder is still being read, is a failure like any other', async (t) => {
  const { folder } = aParent(t)
  for (let n = 0; n < 3; n++) writeFileSync(path.join(folder, String(n)), '')
  const act = t.mock.fn((_: Buffer) => Promise.reject(new Error('EACCES')))
  await assert.rejects(eachEntry(folder, act), /EACCES/)
  assert.equal(act.mock.callCount(), 3)
})
