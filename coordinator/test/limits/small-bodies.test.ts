import assert from 'node:assert/strict'
import { afterEach, test } from 'node:test'
import { setImmediate } from 'node:timers/promises'
import { createSmallBodies } from '../../limits/small-bodies.ts'

const PATIENCE_MS = 3_600_000

/** What waits at the end of a test leaves. */
let clients: AbortController[] = []
afterEach(() => {
  for (const client of clients) client.abort(new Error('the test is over'))
  clients = []
})

function limited({ org = 100, all = 1000, texts = 3, allTexts = 100, patienceMs = PATIENCE_MS } = {}) {
  const bodies = createSmallBodies({ values: { org, all }, texts: { org: texts, all: allTexts }, patienceMs })
  const held: string[] = []
  const releases = new Map<string, () => void>()
  const gone = new AbortController()
  clients.push(gone)
  return {
    held,
    gone,
    release: (name: string) => releases.get(name)!(),
    hold: (orgId: string, name: string, memory: number) => {
      const onHeld = (release: () => void) => {
        held.push(name)
        releases.set(name, release)
      }
      const turn = bodies.hold({ orgId, bytes: 1, memory: () => memory, gone: () => gone.signal, onHeld })
      turn?.catch(() => {})
      return turn
    },
  }
}

const refusal = { code: 'RATE_LIMITED' }

test('bodies become values while there is room for them, and the others in their turn', async () => {
  const { hold, held, release } = limited()
  assert.equal(hold('a', 'first', 60), undefined)
  const second = hold('a', 'second', 60)
  const third = hold('a', 'third', 10)
  assert.equal(hold('b', 'other', 60), undefined)
  assert.deepEqual(held, ['first', 'other'])
  release('first')
  await Promise.all([second, third])
  release('first')
  assert.deepEqual(held, ['first', 'other', 'second', 'third'])
})

test('of an org so many bytes of text may wait, and more is refused at once; others are not', () => {
  const { hold } = limited()
  void hold('a', 'first', 100)
  for (const name of ['second', 'third', 'fourth']) assert.ok(hold('a', name, 1))
  assert.throws(() => hold('a', 'fifth', 1), refusal)
  assert.equal(hold('b', 'other', 100), undefined)
})

test('an org has no more than is left of what all have, so that a further one finds room', () => {
  const { hold } = limited({ all: 200 })
  assert.equal(hold('a', 'a', 90), undefined)
  assert.equal(hold('b', 'b', 55), undefined)
  assert.ok(hold('b', 'more of b', 10))
  assert.equal(hold('c', 'c', 25), undefined)
  // The first of an org has room in any case.
  assert.equal(hold('d', 'd', 100), undefined)
})

test('what leaves while it waits makes room for what stands behind it', async () => {
  const { hold, held, gone, release } = limited()
  void hold('a', 'first', 60)
  const second = hold('a', 'second', 60)
  gone.abort(new Error('the client has gone'))
  await assert.rejects(second!, /the client has gone/)
  assert.deepEqual(held, ['first'])
  release('first')
  assert.equal(hold('a', 'third', 100), undefined)
})

test('what waits too long is told to come again', async () => {
  const { hold } = limited({ patienceMs: 1 })
  void hold('a', 'first', 100)
  await assert.rejects(hold('a', 'second', 1)!, { code: 'UNAVAILABLE' })
  await setImmediate()
  // Its text has left as well.
  for (const name of ['third', 'fourth', 'fifth']) assert.ok(hold('a', name, 1))
})
