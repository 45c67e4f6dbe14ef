import assert from 'node:assert/strict'
import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import { access } from 'node:fs/promises'
import http from 'node:http'
import type { ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import path from 'node:path'
import { test } from 'node:test'
import { setTimeout as delay } from 'node:timers/promises'
import { announce, until } from '@windlass/shared/test/_kit/until.ts'
import { createClock } from '../../../link/clock.ts'
import { createRest } from '../../../link/rest.ts'
import type { FetchPaces } from '../../../run/bundle/bundle-pieces.ts'
import { BundleUnwanted, createBundles } from '../../../run/bundle/bundles.ts'
import type { Bundles } from '../../../run/bundle/bundles.ts'
import { aFolder, aLog } from '../../_kit/an-agent.ts'
import type { Logged } from '../../_kit/an-agent.ts'
import { aBundle } from '../../_kit/bundle.ts'
import type { Packed } from '../../_kit/bundle.ts'
import { refuse } from '../../_kit/http.ts'

const never = new AbortController().signal
const PATIENT: FetchPaces = { stepBytes: 1_000, silenceMs: 60_000, patienceMs: 60_000 }

interface Setting {
  bundles: Bundles
  lines: Logged['lines']
  /** Requests in order: of which bundle, and what answers them. */
  asked: { digest: string; range: string | undefined; response: ServerResponse }[]
  /** A bundle of some 20 kB that the server knows nothing of. */
  large: () => Promise<Packed>
}

/** The agent's own way to a bundle, over real connections to a server that each test answers for. */
function lineTest(name: string, body: (setting: Setting) => Promise<void>, paces = PATIENT): void {
  test(name, async () => {
    const { folder, remove } = await aFolder()
    const asked: Setting['asked'] = []
    const server = http.createServer(({ url = '', headers: { range } }, response) => {
      asked.push({ digest: path.basename(url), range, response })
      announce()
    })
    await once(server.listen(0, '127.0.0.1'), 'listening')
    const { log, lines } = aLog()
    const url = `http://127.0.0.1:${(server.address() as AddressInfo).port}`
    const rest = createRest(url, () => Promise.resolve('token'), createClock())
    const options = { folder: path.join(folder, 'bundles'), cacheBytes: 10_000_000, rest, log, paces }
    const large = () => aBundle({ 'main.mjs': randomBytes(15_000).toString('base64') })
    try {
      await body({ bundles: await createBundles(options), lines, asked, large })
    } finally {
      server.closeAllConnections()
      await new Promise((resolve) => server.close(resolve))
      await remove()
    }
  })
}

function half({ packed }: Packed, response: ServerResponse): number {
  const bytes = Math.floor(packed.length / 2)
  response.writeHead(200, { 'content-length': packed.length }).write(packed.subarray(0, bytes))
  return bytes
}

const isThere = ({ folder }: { folder: string }) => access(path.join(folder, 'main.mjs'))

lineTest(
  'a bundle that goes on coming is not cut off, however long it takes',
  async ({ bundles, asked, large }) => {
    const bundle = await large()
    const holding = bundles.hold(bundle, never)
    const { response } = await until('the request', () => asked[0])
    response.writeHead(200, { 'content-length': bundle.packed.length })
    for (let at = 0; at < bundle.packed.length; at += 1_000) {
      response.write(bundle.packed.subarray(at, at + 1_000))
      await delay(150)
    }
    response.end()
    await isThere(await holding)
    assert.equal(asked.length, 1)
  },
  // Both are over several times before the end.
  { stepBytes: 1_000, silenceMs: 1_000, patienceMs: 1_000 },
)

lineTest(
  'a bundle that comes drop by drop is given up, and the reason says what was slow',
  async ({ bundles, asked, large }) => {
    const bundle = await large()
    const holding = assert.rejects(bundles.hold(bundle, never), {
      message:
        /^The bundle could not be fetched: only \d+ bytes have come in 200 ms; 0\.\d{3} of 0\.0\d\d MB .* in \d+ s$/,
    })
    const dripping = new AbortController()
    void holding.finally(() => dripping.abort())
    for (let [answered, at] = [0, 0]; !dripping.signal.aborted; at++) {
      const { response } = asked.at(-1) ?? {}
      if (answered < asked.length) {
        response!.writeHead(200, { 'content-length': bundle.packed.length })
        ;[answered, at] = [asked.length, 0]
      }
      response?.write(bundle.packed.subarray(at, at + 1))
      await delay(20)
    }
    await holding
    assert.ok(asked.length > 1, 'another connection was tried')
  },
  { stepBytes: 5_000, silenceMs: 200, patienceMs: 500 },
)

const ANSWERS: Record<string, (bundle: Packed, from: number, response: ServerResponse) => void> = {
  'that answers a part': ({ packed }, from, response) =>
    response
      .writeHead(206, { 'content-range': `bytes ${from}-${packed.length - 1}/${packed.length}` })
      .end(packed.subarray(from)),
  'of before, that answers the whole': ({ packed }, _from, response) => response.end(packed),
}

for (const [coordinator, answer] of Object.entries(ANSWERS)) {
  lineTest(
    `a bundle whose connection breaks off goes on where it was, at a coordinator ${coordinator}`,
    async (line) => {
      const { bundles, asked, large, lines } = line
      const bundle = await large()
      const holding = bundles.hold(bundle, never)
      const { response } = await until('the request', () => asked[0])
      const bytes = half(bundle, response)
      response.socket!.end()
      const { range, response: second } = await until('another request', () => asked[1])
      assert.equal(range, `bytes=${bytes}-`)
      answer(bundle, bytes, second)
      await isThere(await holding)
      assert.deepEqual(
        lines.filter(({ name }) => name === 'bundle.retry').map((each) => each['bytes']),
        [bytes],
      )
    },
  )
}

lineTest('a bundle whose answer ends too early, as if that were all, goes on where it was', async (line) => {
  const { bundles, asked, large } = line
  const bundle = await large()
  const holding = bundles.hold(bundle, never)
  const { response } = await until('the request', () => asked[0])
  const third = Math.floor(bundle.packed.length / 3)
  response.end(bundle.packed.subarray(0, third))
  const { range, response: second } = await until('another request', () => asked[1])
  assert.equal(range, `bytes=${third}-`)
  const content = `bytes ${third}-${bundle.packed.length - 1}/${bundle.packed.length}`
  second.writeHead(206, { 'content-range': content }).end(bundle.packed.subarray(third, 2 * third))
  const { range: rest, response: last } = await until('a third request', () => asked[2])
  assert.equal(rest, `bytes=${2 * third}-`)
  last.end(bundle.packed)
  await isThere(await holding)
  assert.equal(asked.length, 3)
})

lineTest(
  'a bundle whose answers always end too early is given up, and the reason says so',
  async ({ bundles, asked, large }) => {
    const bundle = await large()
    const holding = assert.rejects(bundles.hold(bundle, never), {
      name: 'Error',
      message:
        /^The bundle could not be fetched: The answer ended before the bundle did; 0\.010 of 0\.0\d\d MB of its bundle/,
    })
    const given = new AbortController()
    void holding.finally(() => given.abort())
    for (let answered = 0; !given.signal.aborted; await delay(10))
      for (; answered < asked.length; answered++) asked[answered]!.response.end(bundle.packed.subarray(0, 10_000))
    await holding
    assert.ok(asked.length > 1, 'another connection was tried')
  },
  { stepBytes: 1_000, silenceMs: 60_000, patienceMs: 500 },
)

lineTest('a bundle of which the coordinator has only a part is unusable, and the run says why', async (line) => {
  const { bundles, asked, large, lines } = line
  const bundle = await large()
  const holding = assert.rejects(bundles.hold(bundle, never), {
    name: 'BundleUnusable',
    message: /the coordinator has no more of it: 0\.0\d\d of 0\.0\d\d MB of its bundle have come/,
  })
  for (let at = 0; at < 6; at++) {
    const { range, response } = await until(`request ${at + 1}`, () => asked[at])
    if (at % 2 === 0) response.end(bundle.packed.subarray(0, 10_000))
    else refuse(response, 416, 'RANGE_NOT_SATISFIABLE')
    assert.equal(range, at % 2 === 0 ? undefined : 'bytes=10000-')
  }
  await holding
  assert.equal(asked.length, 6)
  assert.equal(lines.filter(({ name }) => name === 'bundle.retry').length, 5)
})

lineTest('four bundles are fetched at a time, and those that were wanted first come first', async (setting) => {
  const { bundles, asked, large } = setting
  const wanted = await Promise.all(Array.from({ length: 7 }, large))
  const holdings = wanted.map((bundle) => bundles.hold(bundle, never))
  for (const [n, bundle] of wanted.entries()) {
    await until(`request ${n + 1}`, () => asked.length === Math.min(7, n + 4))
    asked.find(({ digest }) => digest === bundle.digest)!.response.end(bundle.packed)
    await isThere(await holdings[n]!)
  }
  const order = new Set(asked.slice(0, 4).map(({ digest }) => digest))
  assert.deepEqual(order, new Set(wanted.slice(0, 4).map(({ digest }) => digest)))
  assert.deepEqual(
    asked.slice(4).map(({ digest }) => digest),
    wanted.slice(4).map(({ digest }) => digest),
  )
})

lineTest('a bundle that no run waits for any more lets the next one pass, and is asked for again', async (setting) => {
  const { bundles, asked, large } = setting
  const under = await Promise.all(Array.from({ length: 4 }, large))
  const [gone, next] = [await large(), await large()]
  const holdings = under.map((bundle) => bundles.hold(bundle, never))
  await until('four requests', () => asked.length === 4)
  const unwanted = new AbortController()
  const left = assert.rejects(bundles.hold(gone, unwanted.signal), (error) => {
    return error instanceof BundleUnwanted && /^its bundle \(0\.0\d\d MB\) has waited \d+ s for/.test(error.message)
  })
  const holding = bundles.hold(next, never)
  unwanted.abort()
  await left
  for (const { digest, response } of asked) response.end(under.find((each) => each.digest === digest)!.packed)
  await Promise.all(holdings)
  const after = await until('the next request', () => asked[4])
  assert.equal(after.digest, next.digest)
  after.response.end(next.packed)
  await isThere(await holding)
  const again = bundles.hold(gone, never)
  const last = await until('another request', () => asked[5])
  assert.equal(last.digest, gone.digest)
  last.response.end(gone.packed)
  await isThere(await again)
})

lineTest('a run that gives up says how far its bundle has come, and that goes on', async (setting) => {
  const { bundles, asked, large } = setting
  const bundle = await large()
  const unwanted = new AbortController()
  const left = assert.rejects(bundles.hold(bundle, unwanted.signal), {
    name: 'BundleUnwanted',
    message: /^0\.0\d\d of 0\.0\d\d MB of its bundle have come in \d+ s$/,
  })
  const { response } = await until('the request', () => asked[0])
  const bytes = half(bundle, response)
  unwanted.abort()
  await left
  const holding = bundles.hold(bundle, never)
  response.end(bundle.packed.subarray(bytes))
  await isThere(await holding)
  assert.equal(asked.length, 1)
})
