import assert from 'node:assert/strict'
import { chmod, readdir, readFile, rm, truncate } from 'node:fs/promises'
import path from 'node:path'
import { Readable } from 'node:stream'
import { test } from 'node:test'
import { until } from '@windlass/shared/test/_kit/until.ts'
import { ApiError } from '@windlass/shared/ops/api-error.ts'
import { BundleUnusable, BundleUnwanted, createBundles } from '../../../run/bundle/bundles.ts'
import type { Bundles } from '../../../run/bundle/bundles.ts'
import { aFolder, aLog } from '../../_kit/an-agent.ts'
import { aBundle } from '../../_kit/bundle.ts'
import type { Packed } from '../../_kit/bundle.ts'

const PACES = { stepBytes: 1_000, silenceMs: 3_000, patienceMs: 3_000 }
const never = new AbortController().signal

interface Setting {
  bundles: Bundles
  folder: string
  fetched: string[]
  served: Map<string, Packed>
  /** Thrown by the next fetches, in order. */
  troubles: Error[]
}

function bundlesTest(name: string, body: (setting: Setting) => Promise<void>, cacheBytes = 1_000_000): void {
  test(name, async () => {
    const { folder, remove } = await aFolder()
    const setting = await open(folder, cacheBytes)
    try {
      await body(setting)
    } finally {
      await remove()
    }
  })
}

async function open(folder: string, cacheBytes: number): Promise<Setting> {
  const fetched: string[] = []
  const served = new Map<string, Packed>()
  const troubles: Error[] = []
  const bundle = (digest: string) => {
    fetched.push(digest)
    const trouble = troubles.shift()
    if (trouble) return Promise.reject(trouble)
    const found = served.get(digest)
    if (!found) return Promise.reject(new ApiError('There is nothing here', { status: 404, code: 'NOT_FOUND' }))
    return Promise.resolve({
      from: 0,
      body: Readable.toWeb(Readable.from([found.packed])) as ReadableStream<Uint8Array>,
    })
  }
  const rest = { bundle }
  const options = { folder: path.join(folder, 'bundles'), cacheBytes, rest, log: aLog().log, paces: PACES }
  return { bundles: await createBundles(options), folder, fetched, served, troubles }
}

function serve({ served }: Setting, bundle: Packed): Packed {
  served.set(bundle.digest, bundle)
  return bundle
}

async function digestsIn(folder: string): Promise<string[]> {
  return (await readdir(path.join(folder, 'bundles'))).filter((name) => name.length === 64)
}

bundlesTest('many runs that want one bundle at once share one fetch', async (setting) => {
  const bundle = serve(setting, await aBundle({ 'main.mjs': 'text' }))
  const held = await Promise.all(Array.from({ length: 20 }, () => setting.bundles.hold(bundle, never)))
  assert.equal(setting.fetched.length, 1)
  assert.equal(await readFile(path.join(held[0]!.folder, 'main.mjs'), 'utf8'), 'text')
  await setting.bundles.hold(bundle, never)
  assert.equal(setting.fetched.length, 1)
})

bundlesTest('a bundle is still there for the next process', async (setting) => {
  const bundle = serve(setting, await aBundle({ 'main.mjs': 'text' }))
  await setting.bundles.hold(bundle, never)
  const next = await open(setting.folder, 1_000_000)
  await next.bundles.hold(bundle, never)
  assert.deepEqual(next.fetched, [])
})

const DAMAGES: Record<string, (folder: string) => Promise<void>> = {
  'has lost its main.mjs': (folder) => rm(path.join(folder, 'main.mjs')),
  'holds an empty main.mjs': async (folder) => {
    await chmod(path.join(folder, 'main.mjs'), 0o644)
    await truncate(path.join(folder, 'main.mjs'))
  },
  'is gone': (folder) => rm(folder, { recursive: true }),
}

for (const [damage, inflict] of Object.entries(DAMAGES)) {
  bundlesTest(`a cached bundle that ${damage} is fetched again, once for all who want it`, async (setting) => {
    const bundle = serve(setting, await aBundle({ 'main.mjs': 'text', 'other.mjs': 'more' }))
    const { folder } = await setting.bundles.hold(bundle, never)
    await inflict(folder)
    const held = await Promise.all([1, 2, 3].map(() => setting.bundles.hold(bundle, never)))
    assert.equal(setting.fetched.length, 2)
    assert.equal(await readFile(path.join(held[2]!.folder, 'main.mjs'), 'utf8'), 'text')
  })
}

bundlesTest('a bundle that comes without main.mjs is refused, and nothing of it stays', async (setting) => {
  const bundle = serve(setting, await aBundle({ 'other.mjs': 'text' }))
  await assert.rejects(
    setting.bundles.hold(bundle, never),
    (error) => error instanceof BundleUnusable && /no main\.mjs/.test(error.message),
  )
  assert.equal(setting.fetched.length, 1)
  assert.deepEqual(await readdir(path.join(setting.folder, 'bundles')), ['boot'])
})

bundlesTest(
  'the longest unused bundle makes room, and never one that is in use',
  async (setting) => {
    const names = ['a', 'b', 'c', 'd']
    const all = await Promise.all(
      names.map(async (name) => serve(setting, await aBundle({ 'main.mjs': name.repeat(4_000) }))),
    )
    const [a, b, c, d] = all as [Packed, Packed, Packed, Packed]
    await setting.bundles.hold(a, never)
    const heldB = await setting.bundles.hold(b, never)
    heldB.release()
    const heldC = await setting.bundles.hold(c, never)
    heldC.release()
    await setting.bundles.hold(d, never)
    const left = [a.digest, d.digest].sort()
    await until('the rest is removed', async () => String((await digestsIn(setting.folder)).sort()) === String(left))
  },
  10_000,
)

bundlesTest('a lost connection is tried again', async (setting) => {
  const bundle = serve(setting, await aBundle({ 'main.mjs': 'text' }))
  setting.troubles.push(new ApiError('Cannot reach', { status: 0, code: 'UNREACHABLE' }), new Error('socket hang up'))
  await setting.bundles.hold(bundle, never)
  assert.equal(setting.fetched.length, 3)
})

bundlesTest(
  'bytes that do not have the digest are refused after some tries, and nothing of them stays',
  async (setting) => {
    const right = await aBundle({ 'main.mjs': 'right' })
    const wrong = await aBundle({ 'main.mjs': 'wrong' })
    setting.served.set(right.digest, wrong)
    await assert.rejects(
      setting.bundles.hold(right, never),
      (error) => error instanceof BundleUnusable && /SHA-256/.test(error.message),
    )
    assert.equal(setting.fetched.length, 3)
    assert.deepEqual(await readdir(path.join(setting.folder, 'bundles')), ['boot'])
  },
)

bundlesTest('a bundle that the coordinator does not have is not asked for twice', async (setting) => {
  await assert.rejects(setting.bundles.hold(await aBundle({}), never), BundleUnusable)
  assert.equal(setting.fetched.length, 1)
})

bundlesTest('a run that does not want it any more does not wait for it', async (setting) => {
  setting.troubles.push(...Array.from({ length: 50 }, () => new Error('no way')))
  const unwanted = new AbortController()
  const holding = setting.bundles.hold(await aBundle({}), unwanted.signal)
  unwanted.abort()
  await assert.rejects(holding, BundleUnwanted)
})

bundlesTest('what no run uses can be given back', async (setting) => {
  const [used, idle] = [
    serve(setting, await aBundle({ 'main.mjs': '1' })),
    serve(setting, await aBundle({ 'main.mjs': '2' })),
  ]
  await setting.bundles.hold(used, never)
  const held = await setting.bundles.hold(idle, never)
  held.release()
  setting.bundles.empty()
  assert.deepEqual(await digestsIn(setting.folder), [used.digest])
  assert.equal(setting.bundles.stats().count, 1)
})
