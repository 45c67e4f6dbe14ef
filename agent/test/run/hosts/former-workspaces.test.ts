import assert from 'node:assert/strict'
import {
  chmodSync,
  chownSync,
  existsSync,
  mkdirSync,
  mkdtempSync,
  readdirSync,
  statSync,
  symlinkSync,
  writeFileSync,
} from 'node:fs'
import fs from 'node:fs/promises'
import os from 'node:os'
import path from 'node:path'
import test from 'node:test'
import type { TestContext } from 'node:test'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { FormerWorkspaces } from '../../../run/hosts/former-workspaces.ts'
import { holdUnlinks } from '../../_kit/hold-unlinks.ts'
import { NEEDS_ROOT } from '../../isolation/requirements.ts'

/** Workspaces that an agent has left, with so many files in each. */
function left(t: TestContext, folders: Record<string, number>) {
  const root = mkdtempSync(path.join(os.tmpdir(), 'windlass-former-'))
  t.after(() => fs.rm(root, { recursive: true, force: true }))
  for (const [name, files] of Object.entries(folders)) {
    mkdirSync(path.join(root, name))
    for (let n = 0; n < files; n++) writeFileSync(path.join(root, name, `left-${n}`), '')
  }
  const stayed: unknown[] = []
  const aNext = () => new FormerWorkspaces(root, (folder, error) => stayed.push(folder, error))
  const filesLeft = () => readdirSync(root, { recursive: true }).filter((name) => String(name).includes('left-')).length
  return { root, aNext, stayed, filesLeft }
}

test('a start sets workspaces aside and goes on; what they held is removed behind it', async (t) => {
  const { root, aNext, stayed } = left(t, { '1': 3, '2': 3, '3': 3 })
  const theirs = mkdtempSync(path.join(os.tmpdir(), 'windlass-theirs-'))
  t.after(() => fs.rm(theirs, { recursive: true }))
  writeFileSync(path.join(theirs, 'file'), 'theirs')
  symlinkSync(theirs, path.join(root, '4'))
  symlinkSync(theirs, path.join(root, 'gone-link'))
  const before = statSync(theirs)
  const unlinks = holdUnlinks(t, '/left-')
  const former = aNext()
  await former.setAside(['2'])
  await until('a removal', () => unlinks.held() > 0)
  assert.deepEqual(
    readdirSync(root).filter((name) => !name.startsWith('gone-')),
    ['2'],
  )
  unlinks.release()
  assert.equal(await former.removed(), true)
  assert.deepEqual(readdirSync(root, { recursive: true }).map(String).toSorted(), [
    '2',
    '2/left-0',
    '2/left-1',
    '2/left-2',
  ])
  assert.deepEqual(readdirSync(theirs), ['file'])
  assert.deepEqual([statSync(theirs).mode, statSync(theirs).uid], [before.mode, before.uid])
  assert.deepEqual(stayed, [])
})

test('what an earlier look spared goes with the rest, and a removal under way is let alone', async (t) => {
  const { root, aNext, stayed } = left(t, { '1': 3, '2': 3 })
  const unlinks = holdUnlinks(t, '/left-')
  const former = aNext()
  await former.setAside(['2'])
  await until('a removal', () => unlinks.held() > 0)
  const underWay = readdirSync(root).filter((name) => name.startsWith('gone-'))
  await former.setAside()
  const after = readdirSync(root)
  assert.ok(!after.includes('2'))
  assert.deepEqual(
    underWay.filter((name) => !after.includes(name)),
    [],
  )
  unlinks.release()
  await former.removed()
  assert.deepEqual([readdirSync(root), stayed], [[], []])
})

test('what could not be removed is tried once more by the second look, when there may be room', async (t) => {
  const { root, aNext, stayed } = left(t, { '1': 2 })
  const full = Object.assign(new Error('no room'), { code: 'ENOSPC' })
  const makesNone = t.mock.method(fs, 'mkdtemp', () => Promise.reject(full))
  const former = aNext()
  await former.setAside()
  assert.equal(await former.removed(), true)
  assert.deepEqual(stayed, [path.join(root, readdirSync(root)[0]!), full])
  makesNone.mock.restore()
  await former.setAside()
  assert.equal(await former.removed(), true)
  assert.deepEqual(readdirSync(root), [])
  assert.equal(stayed.length, 2)
})

test('a stop ends a removal in its midst, and the next agent goes on with it', async (t) => {
  const { root, aNext, stayed, filesLeft } = left(t, { '1': 200, '2': 200 })
  const unlinks = holdUnlinks(t, '/left-')
  const former = aNext()
  await former.setAside()
  await until('a removal', () => unlinks.held() > 0)
  const removed = former.removed()
  const closed = former.close()
  unlinks.release()
  await closed
  assert.equal(await removed, false)
  assert.ok(filesLeft() >= 390, `${filesLeft()} files`)
  const next = aNext()
  await next.setAside()
  assert.equal(await next.removed(), true)
  assert.deepEqual([readdirSync(root), stayed], [[], []])
})

test('a start without room waits until there is some, and no longer than there is something to remove', async (t) => {
  const { aNext } = left(t, { '1': 3 })
  const unlinks = holdUnlinks(t, '/left-')
  const { signal } = new AbortController()
  const former = aNext()
  await former.setAside()
  let looks = 0
  await former.untilRoom(() => Promise.resolve((looks += 1) === 3), signal)
  assert.equal(looks, 3)
  unlinks.release()
  await former.untilRoom(() => Promise.resolve(false), signal)
  assert.equal(await former.removed(), true)
  await former.untilRoom(() => assert.fail('nothing is left to wait for'), signal)
})

test(
  'who gets the number of its user next does not get into a workspace set aside',
  { skip: NEEDS_ROOT },
  async (t) => {
    const { root, aNext } = left(t, { '1': 1 })
    chownSync(path.join(root, '1'), 650_003, 650_003)
    chmodSync(path.join(root, '1'), 0o777)
    const unlinks = holdUnlinks(t, '/left-')
    const former = aNext()
    await former.setAside()
    const aside = readdirSync(root).find((name) => existsSync(path.join(root, name, 'left-0')))
    const { uid, mode } = statSync(path.join(root, aside ?? ''))
    assert.deepEqual([uid, mode & 0o777], [0, 0o700])
    unlinks.release()
    await former.removed()
  },
)
