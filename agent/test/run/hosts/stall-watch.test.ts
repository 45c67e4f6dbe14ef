// A program that holds the lock of a file or folder by a file system of its own would keep its agent waiting.
import assert from 'node:assert/strict'
import { mkdirSync } from 'node:fs'
import { mkdir } from 'node:fs/promises'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { endUids, pidsOfUids } from '../../../isolation/uids.ts'
import { watchPipes } from '../../../run/hosts/pipe-watch.ts'
import { aHome, aWaiter, guardFileSystems, NEEDS_FUSE as skip } from '../../isolation/file-systems.ts'
import { ofUsers } from '../../isolation/requirements.ts'

const NO_GROUP = 2 ** 22

/** A watch, and what it said; `uid` is of a run. */
function aWatch(t: TestContext) {
  const { uids } = ofUsers()
  const [uid, waiter] = [uids.first + 1, uids.first + 2]
  const ended: number[] = []
  const logged: string[] = []
  const heard = Promise.withResolvers<Error>()
  const runs = { ...uids, onEnded: (owner: number) => void ended.push(owner) }
  const watch = watchPipes({ log: (name) => void logged.push(name), runs })
  t.after(() => watch.close())
  watch.add({ group: NO_GROUP, uid, folder: undefined }, [], heard.resolve)
  const wasGuarded = guardFileSystems(t, uid, path.join(aHome(t), 'guarded'))
  return { uids, uid, waiter, ended, logged, heard: heard.promise, wasGuarded }
}

const failed = (act: Promise<unknown>) => assert.rejects(act, /ENOTCONN|ECONNABORTED|EIO/)

/** Of that one the kernel keeps the thread of this process that wants its lock. */
const make = (folder: string) => mkdir(path.join(folder, 'one'))

test('a run is ended for whose file system a task of the pool waits', { skip }, async (t) => {
  const { uid, waiter, ended, logged, heard, wasGuarded } = aWatch(t)
  const { folder } = await aWaiter(t, { owner: uid, waiter })
  await failed(make(folder))
  assert.equal(wasGuarded(), false)
  assert.match((await heard).message, /kept its agent waiting for \d+\.\d s: .*FUSE/)
  assert.deepEqual([ended, logged], [[uid], ['process.held-file']])
})

test('so is one for which the first thread waits', { skip }, async (t) => {
  const { uid, waiter, heard, wasGuarded } = aWatch(t)
  const { folder } = await aWaiter(t, { owner: uid, waiter })
  assert.throws(() => mkdirSync(path.join(folder, 'one')), /ENOTCONN|ECONNABORTED|EIO/)
  assert.equal((await heard).name, 'HeldFile')
  assert.equal(wasGuarded(), false)
})

test('what waits for anything else leads to nothing', { skip }, async (t) => {
  const { uids, uid, waiter, ended, heard } = aWatch(t)
  const stranger = uids.last + 1
  const wasGuarded = guardFileSystems(t, stranger, path.join(aHome(t), 'guarded'))
  const strange = await aWaiter(t, { owner: stranger, waiter: stranger })
  let isFree = false
  const making = failed(make(strange.folder)).then(() => (isFree = true))
  // It has waited for longer when this one is ended.
  const { folder } = await aWaiter(t, { owner: uid, waiter })
  await failed(make(folder))
  await heard
  assert.deepEqual([ended, isFree], [[uid], false])
  assert.notDeepEqual(pidsOfUids({ first: stranger, last: stranger }), [])
  assert.equal(wasGuarded(), false)
  await endUids({ first: stranger, last: stranger }, null)
  await making
})
