// How many bundles are kept, and how the others go: behind, and one after the other.
import assert from 'node:assert/strict'
import fs from 'node:fs/promises'
import { syncBuiltinESMExports } from 'node:module'
import path from 'node:path'
import { test, type TestContext } from 'node:test'
import { announce, moment, until } from '@windlass/shared/test/_kit/until.ts'
import { bootId } from '../../../os/process-id.ts'
import { createBundles, type BundleOptions } from '../../../run/bundle/bundles.ts'
import { aFolder, aLog } from '../../_kit/an-agent.ts'
import { aBundle } from '../../_kit/bundle.ts'

const never = new AbortController().signal
const MANY = 30

const digestOf = (n: number) => n.toString(16).padStart(64, '0')
const bundle = (n: number) => ({ digest: digestOf(n), bytes: 1 })

/** Bundles of an earlier process, which had this boot. */
async function aCacheOf(t: TestContext, count: number, boot = bootId()) {
  const { folder, remove } = await aFolder()
  const bundles = path.join(folder, 'bundles')
  await fs.mkdir(bundles)
  await fs.writeFile(path.join(bundles, 'boot'), boot)
  for (let n = 0; n < count; n++) {
    await fs.mkdir(path.join(bundles, digestOf(n), 'deep', 'er'), { recursive: true })
    for (const name of ['main.mjs', 'deep/other.mjs', 'deep/er/more.mjs'])
      await fs.writeFile(path.join(bundles, digestOf(n), name), 'text', { mode: 0o444 })
  }
  t.after(remove)
  const open = async (more: Partial<BundleOptions> = {}) => {
    const rest = { bundle: () => Promise.reject(new Error('it is not fetched')) }
    const opened = await createBundles({ folder: bundles, cacheBytes: 1e9, rest, log: aLog().log, ...more })
    t.after(() => opened.close())
    return opened
  }
  return { folder, bundles, open }
}

const namesIn = async (folder: string) => (await fs.readdir(folder)).sort()
const digestsIn = async (folder: string) => (await namesIn(folder)).filter((name) => name.length === 64)

/** Holds the removal of files until the test lets go of them. */
function holdRemovals(t: TestContext) {
  const { promise, resolve } = Promise.withResolvers<void>()
  const { rm } = fs
  let held = 0
  const mock = t.mock.method(fs, 'rm', async (...given: Parameters<typeof rm>) => {
    held += 1
    announce()
    await promise
    return rm(...given)
  })
  syncBuiltinESMExports()
  const release = () => {
    resolve()
    mock.mock.restore()
    syncBuiltinESMExports()
  }
  t.after(release)
  return { release, held: () => held }
}

test('no more bundles are kept than there may be, the longest unused go first', async (t) => {
  const { bundles, open } = await aCacheOf(t, 0)
  const all = await Promise.all(['a', 'b', 'c'].map((text) => aBundle({ 'main.mjs': text })))
  const rest = {
    bundle: (digest: string) => {
      const { packed } = all.find((each) => each.digest === digest)!
      return Promise.resolve({ from: 0, body: new Blob([new Uint8Array(packed)]).stream() })
    },
  }
  const cache = await open({ mostCached: 2, rest })
  const removed = moment('bundles.removed')
  for (const each of all) (await cache.hold(each, never)).release()
  await removed
  assert.deepEqual(await digestsIn(bundles), [all[1]!.digest, all[2]!.digest].sort())
  assert.equal(cache.stats().count, 2)
})

test('a start removes what is too much behind, and nothing that a program uses', async (t) => {
  const { bundles, open } = await aCacheOf(t, MANY)
  const removals = holdRemovals(t)
  const inUse = [digestOf(MANY - 1), digestOf(MANY + 1)]
  const cache = await open({ mostCached: 3, inUse })
  assert.equal(cache.stats().count, 3)
  await until('a file is to be removed', () => removals.held() > 0)
  // Of all the others one is being removed.
  assert.equal(removals.held(), 1)
  assert.equal((await digestsIn(bundles)).length, MANY - 1)
  const removed = moment('bundles.removed')
  removals.release()
  await removed
  const left = await digestsIn(bundles)
  assert.equal(left.length, 3)
  assert.ok(left.includes(digestOf(MANY - 1)))
})

test('bundles of another boot are set aside by a start, which does not wait for their removal', async (t) => {
  const { folder, bundles, open } = await aCacheOf(t, MANY, 'another boot')
  const removals = holdRemovals(t)
  const cache = await open()
  assert.equal(cache.stats().count, 0)
  assert.deepEqual(await digestsIn(bundles), [])
  await until('a file is to be removed', () => removals.held() > 0)
  assert.equal(removals.held(), 1)
  const removed = moment('bundles.removed')
  removals.release()
  await removed
  assert.deepEqual(await namesIn(bundles), ['boot'])
  assert.deepEqual(
    (await namesIn(folder)).filter((name) => name.startsWith('bundles')),
    ['bundles'],
  )
})

test('what an agent had left that was killed meanwhile is removed by the next one', async (t) => {
  const { folder, bundles, open } = await aCacheOf(t, 2)
  await fs.cp(bundles, path.join(folder, 'bundles.former-1'), { recursive: true })
  await fs.cp(path.join(bundles, digestOf(1)), path.join(bundles, 'draft-1'), { recursive: true })
  await fs.rename(path.join(bundles, digestOf(0)), path.join(bundles, 'trash-1'))
  const removed = moment('bundles.removed')
  await open()
  await removed
  assert.deepEqual(await namesIn(bundles), [digestOf(1), 'boot'])
  assert.ok(!(await namesIn(folder)).includes('bundles.former-1'))
})

test('what is given back goes one after the other, and may come again before its turn', async (t) => {
  const { bundles, open } = await aCacheOf(t, MANY)
  const again = await aBundle({ 'main.mjs': 'again' })
  await fs.rename(path.join(bundles, digestOf(MANY - 1)), path.join(bundles, again.digest))
  const body = () => new Blob([new Uint8Array(again.packed)]).stream()
  const cache = await open({ rest: { bundle: () => Promise.resolve({ from: 0, body: body() }) } })
  const removals = holdRemovals(t)
  const used = await cache.hold(bundle(0), never)
  cache.empty()
  cache.empty()
  assert.equal(cache.stats().count, 1)
  await until('a file is to be removed', () => removals.held() > 0)
  assert.equal(removals.held(), 1)
  assert.equal((await digestsIn(bundles)).length, MANY - 1)
  const held = await cache.hold(again, never)
  assert.equal(await fs.readFile(path.join(held.folder, 'main.mjs'), 'utf8'), 'again')
  const removed = moment('bundles.removed')
  removals.release()
  await removed
  assert.deepEqual(await namesIn(bundles), [digestOf(0), again.digest, 'boot'].sort())
  used.release()
})

test('the end of an agent ends a removal, and the next one has what is left', async (t) => {
  const { bundles, open } = await aCacheOf(t, MANY)
  const removals = holdRemovals(t)
  const cache = await open()
  cache.empty()
  await until('a file is to be removed', () => removals.held() > 0)
  const closed = cache.close()
  removals.release()
  await closed
  assert.equal((await digestsIn(bundles)).length, MANY - 1)
  const removed = moment('bundles.removed')
  const next = await open()
  await removed
  assert.equal(next.stats().count, MANY - 1)
  assert.equal((await namesIn(bundles)).length, MANY)
})
