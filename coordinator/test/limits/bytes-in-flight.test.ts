import assert from 'node:assert/strict'
import { connect, type Socket } from 'node:net'
import { after, before, test } from 'node:test'
import { DEADLINE_MS } from '@windlass/shared/test/_kit/until.ts'
import { createBytesInFlight } from '../../limits/bytes-in-flight.ts'
import { anOrg, aCoordinatorOfItsOwn, rawCall, type TestCoordinator } from '../_kit/coordinator.ts'
import { post } from '../_kit/mcp.ts'
import { aKey } from '../_kit/credentials.ts'
import { untilPolled } from '../_kit/until.ts'

const MIB = 1024 * 1024
let c: TestCoordinator

before(async () => {
  c = await aCoordinatorOfItsOwn({ MAX_DEPLOYS_BYTES: 100 * MIB, MAX_ORG_DEPLOYS_BYTES: 64 * MIB })
})
after(() => c.stop())

test('an org and all together have so many bytes under way at once, and what is small is not counted', () => {
  const inFlight = createBytesInFlight({ org: 3 * MIB, all: 4 * MIB })
  const [one, two, other] = [inFlight.hold('a'), inFlight.hold('a'), inFlight.hold('b')]
  one.take(MIB)
  one.take(MIB)
  assert.throws(() => two.take(2 * MIB), { code: 'RATE_LIMITED', status: 429, message: /let one of them end first/ })
  assert.throws(() => other.take(3 * MIB), { code: 'UNAVAILABLE', status: 503, message: /try again/ })
  two.take(60 * 1024)
  for (let n = 0; n < 200; n++) inFlight.hold('a').take(60 * 1024)
  other.take(2 * MIB)
  one.release()
  one.release()
  two.take(2 * MIB)
  assert.throws(() => inFlight.hold('b').take(MIB), { code: 'UNAVAILABLE' })
})

test('what is announced counts for its org, and for all together when it is there', () => {
  const inFlight = createBytesInFlight({ org: 3 * MIB, all: 4 * MIB })
  const [one, two] = [inFlight.hold('a'), inFlight.hold('b')]
  one.announce(3 * MIB)
  two.announce(3 * MIB)
  assert.throws(() => inFlight.hold('a').announce(MIB), { code: 'RATE_LIMITED', status: 429 })
  assert.throws(() => inFlight.hold('a').take(MIB), { code: 'RATE_LIMITED' })
  inFlight.hold('c').take(3 * MIB)
  // Announced already, so it adds nothing to what its org has.
  one.take(MIB)
  assert.throws(() => two.take(MIB), { code: 'UNAVAILABLE', status: 503 })
  one.release()
  two.take(MIB)
})

test('what has been coming for longest of the one with the most gives way, until it is whole', () => {
  const inFlight = createBytesInFlight({ org: 4 * MIB, all: 6 * MIB })
  const gone: string[] = []
  const coming = (orgId: string, name: string, bytes: number) => {
    const holding = inFlight.hold(orgId, () => {
      gone.push(name)
      holding.release()
    })
    holding.take(bytes)
    return holding
  }
  coming('a', 'a1', 1.5 * MIB)
  coming('b', 'b1', 1.5 * MIB)
  coming('a', 'a2', 1.5 * MIB)
  coming('c', 'c1', 2 * MIB)
  assert.deepEqual(gone, ['a1'])
  const whole = coming('c', 'c2', MIB)
  whole.whole()
  coming('d', 'd1', MIB)
  assert.deepEqual(gone, ['a1', 'c1'])
  assert.throws(() => coming('d', 'd2', 4 * MIB), { code: 'RATE_LIMITED' }, 'no other gives way for what is refused')
  for (const orgId of ['e', 'f']) inFlight.hold(orgId).take(1.5 * MIB)
  assert.deepEqual(gone.slice(2).toSorted(), ['a2', 'b1'], 'of those that hold as much, any')
  assert.throws(() => coming('g', 'g1', 2 * MIB), { code: 'UNAVAILABLE' }, 'it would have more than d1')
  coming('g', 'g2', MIB)
  for (const orgId of ['h', 'i']) inFlight.hold(orgId).take(MIB)
  assert.throws(() => inFlight.hold('j').take(MIB), { code: 'UNAVAILABLE' }, 'what is whole gives way to nobody')
  assert.deepEqual(gone.slice(4).toSorted(), ['d1', 'g2'])
})

test('what has come slowly gives way, however little it is', () => {
  let now = 0
  const inFlight = createBytesInFlight({ org: 4 * MIB, all: 4 * MIB }, { now: () => now })
  const gone: string[] = []
  const coming = (name: string, bytes: number) => {
    const holding = inFlight.hold(name, () => {
      gone.push(name)
      holding.release()
    })
    holding.take(bytes)
    return holding
  }
  for (let n = 0; n < 4; n++) coming(`slow ${n}`, MIB)
  now = 10_000
  const large = coming('large', 2 * MIB)
  large.take(2 * MIB)
  assert.deepEqual(gone, ['slow 0', 'slow 1', 'slow 2', 'slow 3'])
  now += 10_000
  coming('small', 1)
  assert.deepEqual(gone.slice(4), ['large'])
})

test('what may give way is counted from its first byte', () => {
  const inFlight = createBytesInFlight({ org: 100_000, all: 200_000 })
  const small = () => inFlight.hold('a', () => assert.fail('there is room')).take(30_000)
  for (let n = 0; n < 3; n++) small()
  assert.throws(small, { code: 'RATE_LIMITED' })
})

interface Base {
  apiKey: string
  org: string
  orgId: string
}

/** The head of a deploy of so many bytes, of which few come. */
function head(path: string, apiKey: string, bytes: number): Socket {
  const { hostname, port } = new URL(c.url)
  const socket = connect(Number(port), hostname)
  const lines = [
    `POST ${path} HTTP/1.1`,
    `host: ${hostname}`,
    `authorization: Bearer ${apiKey}`,
    'content-type: application/json',
    `content-length: ${bytes}`,
  ]
  socket.write(`${lines.join('\r\n')}\r\n\r\n{"files":`)
  return socket
}

/** With it nothing of 8 MiB has room any more: its org has none once it is announced, and nobody once it has come. */
async function begun(base: Base, bytes: number, { sent = 0, keepsOut = base.orgId } = {}): Promise<Socket> {
  const socket = head(`/v1/orgs/${base.org}/workflows`, base.apiKey, bytes)
  if (sent > 0) socket.write(Buffer.alloc(sent, ' '))
  await untilPolled('the deploy to be under way', () => !hasRoom(keepsOut, 8 * MIB))
  return socket
}

function hasRoom(orgId: string, bytes: number): boolean {
  const holding = c.deps.bodies.hold(orgId)
  try {
    holding.take(bytes)
    return true
  } catch {
    return false
  } finally {
    holding.release()
  }
}

/** A deploy that is refused for what it says, once it is let in. */
async function deploy(base: Base, bytes: number) {
  const body = JSON.stringify({ files: [], text: 'x'.repeat(bytes) })
  const answer = await rawCall({ ...base, url: c.url }, 'POST', `/v1/orgs/${base.org}/workflows`, body)
  const { error } = (await answer.json()) as { error: { code: string; detail?: Record<string, unknown> } }
  return { status: answer.status, code: error.code, detail: error.detail, wait: answer.headers.get('retry-after') }
}

test('deploys of an org do not fill the memory, nor keep those of others out', async () => {
  const ours = { apiKey: c.apiKey, org: c.org, orgId: c.orgId }
  const { id, slug, apiKey } = await anOrg(c)
  const others = { apiKey, org: slug, orgId: id }
  const first = await begun(ours, 60 * MIB)
  const refused = await deploy(ours, 8 * MIB)
  assert.deepEqual([refused.code, refused.wait, refused.detail?.['scope']], ['RATE_LIMITED', '5', 'org'])
  assert.equal(refused.detail?.['limitBytes'], 64 * MIB)
  assert.equal((await deploy(ours, 1000)).code, 'VALIDATION_FAILED')
  assert.equal((await deploy(others, 8 * MIB)).code, 'VALIDATION_FAILED')
  const overMcp = await post({ url: c.url, apiKey: c.apiKey }, { jsonrpc: '2.0', id: 1, text: 'x'.repeat(8 * MIB) })
  assert.equal(overMcp.status, 429)

  first.write(Buffer.alloc(59 * MIB, ' '))
  const second = await begun(others, 38 * MIB, { sent: 37 * MIB, keepsOut: 'somebody' })
  const full = await deploy(others, 8 * MIB)
  assert.deepEqual([full.code, full.wait], ['UNAVAILABLE', '1'])

  first.destroy()
  second.destroy()
  await untilPolled('the room of those who left', () => hasRoom(c.orgId, 60 * MIB))
  assert.equal((await deploy(ours, 8 * MIB)).code, 'VALIDATION_FAILED')
  assert.equal((await deploy(others, 8 * MIB)).code, 'VALIDATION_FAILED')
})

test('a body of unknown length is counted as it comes', async () => {
  const { id, slug, apiKey } = await anOrg(c)
  const first = await begun({ apiKey, org: slug, orgId: id }, 60 * MIB)
  const pieces = new ReadableStream({
    start(controller) {
      for (let n = 0; n < 8; n++) controller.enqueue(new Uint8Array(MIB).fill(32))
      controller.close()
    },
  })
  const answer = await fetch(`${c.url}/v1/orgs/${slug}/workflows`, {
    method: 'POST',
    headers: { authorization: `Bearer ${apiKey}`, 'content-type': 'application/json' },
    body: pieces,
    duplex: 'half',
    signal: AbortSignal.timeout(DEADLINE_MS),
  })
  assert.equal(answer.status, 429)
  first.destroy()
})

test('deploys that are announced and do not come keep no other org out', async () => {
  const orgs = await Promise.all([anOrg(c), anOrg(c)])
  const sockets = await Promise.all(
    orgs.map(({ id, slug, apiKey }) => begun({ apiKey, org: slug, orgId: id }, 60 * MIB)),
  )
  const answer = await deploy({ apiKey: c.apiKey, org: c.org, orgId: c.orgId }, 8 * MIB)
  assert.equal(answer.code, 'VALIDATION_FAILED')
  for (const socket of sockets) socket.destroy()
})

test('who leaves while the credential is looked up leaves nothing behind', async () => {
  const { id, slug } = await anOrg(c)
  for (const path of [`/v1/orgs/${slug}/workflows`, '/mcp/v1']) {
    const apiKey = await aKey(c.db, { orgId: id })
    await c.db.begin(async (tx) => {
      await tx`lock table api_keys in access exclusive mode`
      const socket = head(path, apiKey, 60 * MIB)
      await untilPolled('the look-up to wait', waitsForLock)
      socket.resetAndDestroy()
      // What was closed before this came in has been seen when this is answered.
      for (let n = 0; n < 3; n++) await fetch(`${c.url}/healthz`)
    })
    // Behind it on the same way.
    assert.equal((await deploy({ apiKey, org: slug, orgId: id }, 1000)).code, 'VALIDATION_FAILED')
    assert.equal((await post({ url: c.url, apiKey }, { jsonrpc: '2.0', id: 1, method: 'ping' })).status, 200)
    assert.equal(hasRoom(id, 64 * MIB), true, path)
  }
})

async function waitsForLock(): Promise<boolean> {
  const waiting = await c.db`
    select 1 from pg_stat_activity where datname = current_database() and wait_event_type = 'Lock'`
  return waiting.length > 0
}
