// A proxy answers in place of the coordinator while a bundle is fetched.
import assert from 'node:assert/strict'
import { access } from 'node:fs/promises'
import { randomBytes } from 'node:crypto'
import path from 'node:path'
import { test } from 'node:test'
import type { TestContext } from 'node:test'
import { answerAs, behindForeign, FOREIGN } from '@windlass/shared/test/_kit/foreign.ts'
import { createClock } from '../../../link/clock.ts'
import { createRest } from '../../../link/rest.ts'
import { createBundles } from '../../../run/bundle/bundles.ts'
import { aFolder, aLog } from '../../_kit/an-agent.ts'
import { aBundle } from '../../_kit/bundle.ts'
import { refuse } from '../../_kit/http.ts'

const never = new AbortController().signal

async function bundlesOf(t: TestContext, url: string, patienceMs: number) {
  t.mock.method(Math, 'random', () => 0)
  const { folder, remove } = await aFolder()
  t.after(remove)
  return createBundles({
    folder: path.join(folder, 'bundles'),
    cacheBytes: 10_000_000,
    rest: createRest(url, () => Promise.resolve('token'), createClock()),
    log: aLog().log,
    paces: { stepBytes: 1_000, silenceMs: 60_000, patienceMs },
  })
}

const aLarge = () => aBundle({ 'main.mjs': randomBytes(15_000).toString('base64') })

test('whatever a proxy answers in between says nothing of a bundle, at its beginning and in its midst', async (t) => {
  const bundle = await aLarge()
  const half = Math.floor(bundle.packed.length / 2)
  const inBetween = [...FOREIGN]
  const { url, left } = await behindForeign(t, FOREIGN, ({ headers: { range } }, response) => {
    if (range === undefined) return void response.end(bundle.packed.subarray(0, half))
    const foreign = inBetween.shift()
    if (foreign) return answerAs(response, foreign)
    assert.equal(range, `bytes=${half}-`)
    const content = `bytes ${half}-${bundle.packed.length - 1}/${bundle.packed.length}`
    return void response.writeHead(206, { 'content-range': content }).end(bundle.packed.subarray(half))
  })
  const bundles = await bundlesOf(t, url, 60_000)
  await access(path.join((await bundles.hold(bundle, never)).folder, 'main.mjs'))
  assert.deepEqual([left(), inBetween.length], [0, 0])
})

test('a bundle behind a proxy that stays like that is left to another agent', async (t) => {
  for (const foreign of FOREIGN) {
    const { url } = await behindForeign(t, Array(100_000).fill(foreign), () => assert.fail('so often'))
    const bundles = await bundlesOf(t, url, 50)
    await assert.rejects(bundles.hold(await aLarge(), never), { name: 'Error', message: /could not be fetched/ })
  }
})

test('what the coordinator says of a bundle counts at once', async (t) => {
  const { url } = await behindForeign(t, [], (_, response) => refuse(response, 404, 'NOT_FOUND'))
  const bundles = await bundlesOf(t, url, 60_000)
  await assert.rejects(bundles.hold(await aLarge(), never), { name: 'BundleUnusable' })
})
