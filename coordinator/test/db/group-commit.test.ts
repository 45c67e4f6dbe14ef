import assert from 'node:assert/strict'
import { test } from 'node:test'
import { Fault } from '@windlass/shared/errors.ts'
import { doubling } from '../_kit/doubling.ts'

const upTo = (n: number) => Array.from({ length: n }, (_, i) => i)

function failure(code: string): Error {
  return Object.assign(new Error(`failed with ${code}`), { code })
}

test('what arrives in one turn shares a commit, up to its size, and everybody gets his own answer in order', async () => {
  const { add, batches } = doubling()
  assert.deepEqual(
    await Promise.all(upTo(25).map(add)),
    upTo(25).map((n) => n * 2),
  )
  assert.deepEqual(
    batches.map((batch) => batch.length),
    [10, 10, 5],
  )
  assert.deepEqual(batches.flat(), upTo(25))
})

test('what arrives while a commit is under way waits for the next, and goes together', async () => {
  const held = Promise.withResolvers<void>()
  const { add, batches, idle } = doubling({
    commit: async (items) => {
      if (items.includes(0)) await held.promise
      return items
    },
  })
  const first = add(0)
  await new Promise(setImmediate)
  const rest = [1, 2, 3].map(add)
  await new Promise(setImmediate)
  assert.deepEqual(batches, [[0]])
  held.resolve()
  await Promise.all([first, ...rest, idle()])
  assert.deepEqual(batches, [[0], [1, 2, 3]])
})

test('a commit that waits lets others pass but not those of its keys, which keep their order', async () => {
  const held = Promise.withResolvers<void>()
  const { add, batches, idle } = doubling({
    lanes: 2,
    spare: { afterMs: 1, keyOf: (item) => String(item % 10) },
    commit: async (items) => {
      if (items.includes(1)) await held.promise
      return items
    },
  })
  const first = [1, 2].map(add)
  await new Promise(setImmediate)
  const late = [11, 21, 12].map(add)
  // They are of other keys: both come to their end while the first waits.
  assert.deepEqual(await Promise.all([3, 13].map(add)), [3, 13])
  assert.equal(await add(4), 4)
  assert.deepEqual(batches[0], [1, 2])
  assert.deepEqual(batches.slice(1).flat(), [3, 13, 4])
  held.resolve()
  await Promise.all([...first, ...late, idle()])
  assert.deepEqual(new Set(batches.at(-1)), new Set([11, 12, 21]))
  assert.deepEqual(
    batches.at(-1)!.filter((item) => item % 10 === 1),
    [11, 21],
  )
})

test('commits that end at once share one lane, however many there are', async () => {
  let underWay = 0
  const { add, batches } = doubling({
    lanes: 3,
    spare: { afterMs: 60_000, keyOf: String },
    commit: async (items) => {
      assert.equal(++underWay, 1)
      await new Promise(setImmediate)
      underWay--
      return items
    },
  })
  for (let round = 0; round < 5; round++) await Promise.all(upTo(4).map((n) => add(4 * round + n)))
  assert.deepEqual(batches.flat(), upTo(20))
})

test('no more commits are under way than there are lanes', async () => {
  let underWay = 0
  let most = 0
  const full = Promise.withResolvers<void>()
  const { add } = doubling({
    lanes: 3,
    max: 1,
    commit: async (items) => {
      most = Math.max(most, ++underWay)
      if (most === 3) full.resolve()
      await full.promise
      // Room for a fourth, if there were one.
      await new Promise(setImmediate)
      underWay--
      return items
    },
  })
  await Promise.all(upTo(20).map(add))
  assert.equal(most, 3)
})

test('items are counted by their weight, and one that is too heavy goes alone', async () => {
  const { add, batches } = doubling({ weight: (item) => item })
  await Promise.all([4, 4, 4, 50, 1].map(add))
  assert.deepEqual(batches, [[4, 4, 4], [50], [1]])
})

test('one item that the database refuses fails alone', async () => {
  const { add, batches } = doubling({
    commit: async (items) => {
      if (items.includes(3)) throw failure('22021')
      return items
    },
  })
  const settled = await Promise.allSettled(upTo(6).map(add))
  assert.deepEqual(
    settled.map(({ status }) => status),
    ['fulfilled', 'fulfilled', 'fulfilled', 'rejected', 'fulfilled', 'fulfilled'],
  )
  assert.deepEqual(batches, [upTo(6), [0, 1, 2], [3, 4, 5], [3, 4], [3], [4], [5]])
})

test('one bad item among many costs some tries, not one for each of its neighbours', async () => {
  const { add, batches } = doubling({
    max: 1024,
    commit: async (items) => {
      if (items.includes(700)) throw failure('22021')
      return items
    },
  })
  const settled = await Promise.allSettled(upTo(1024).map(add))
  assert.deepEqual(
    settled.flatMap(({ status }, n) => (status === 'rejected' ? [n] : [])),
    [700],
  )
  assert.equal(batches.length, 21)
})

test('what becomes of a refused item is settled before the items behind it are committed', async () => {
  const order: string[] = []
  const { add } = doubling({
    commit: async (items) => {
      if (items.includes(1)) throw failure('22021')
      order.push(`commit ${items.join()}`)
      return items
    },
    giveUp: async (item, error) => {
      await new Promise(setImmediate)
      order.push(`give up ${item}: ${(error as Error).message}`)
      return -item
    },
  })
  assert.deepEqual(await Promise.all(upTo(3).map(add)), [0, -1, 2])
  assert.deepEqual(order, ['commit 0', 'give up 1: failed with 22021', 'commit 2'])
})

test('nothing is given up for a server that is away or in trouble', async () => {
  for (const code of [
    'ECONNREFUSED',
    '40P01',
    '53100',
    '55P03',
    '57014',
    '25006',
    '28P01',
    '08P01',
    'XX000',
    'EMFILE',
  ]) {
    const { add } = doubling({
      patienceMs: 0,
      commit: () => Promise.reject(failure(code)),
      giveUp: () => Promise.resolve(-1),
    })
    await assert.rejects(add(1), { code })
  }
})

test('what our own code refuses is given up, and what was stopped is not', async () => {
  const giving = (error: Error) => {
    const commit = async () => {
      throw error
    }
    return doubling({ commit, giveUp: async () => -1 }).add(1)
  }
  for (const error of [new TypeError('no such field'), failure('ERR_INVALID_ARG_TYPE'), new Fault('VALIDATION_FAILED')])
    assert.equal(await giving(error), -1)
  const stopped = AbortSignal.abort().reason as Error
  for (const error of [stopped, new Fault('UNAVAILABLE'), failure('ENOMEM'), failure('CERT_HAS_EXPIRED')])
    await assert.rejects(giving(error), error)
})

for (const code of ['XX000', '53200'])
  test(`one that fails time and again with ${code} is given up when others have been committed`, async () => {
    const committing = (isAlone: boolean) => {
      const { add } = doubling({
        stubborn: { times: 3, ms: 0 },
        spare: { afterMs: 1000, keyOf: String },
        commit: async (items) => {
          if (items.includes(1)) throw failure(code)
          return items
        },
        giveUp: (item) => Promise.resolve(-item),
      })
      return async () => (isAlone ? [] : [await add(2)]).concat(await add(1).catch(() => 0))
    }
    const among = committing(false)
    const seen = [await among(), await among(), await among(), await among()]
    assert.deepEqual(seen, [
      [2, 0],
      [2, 0],
      [2, -1],
      [2, -1],
    ])
    // It may be the server.
    const alone = committing(true)
    for (let i = 0; i < 5; i++) assert.deepEqual(await alone(), [0])
  })

test('one that somebody else holds, or that there is no room for, is never given up', async () => {
  for (const code of ['55P03', '53100', '25006', '58030']) {
    const { add } = doubling({
      stubborn: { times: 2, ms: 0 },
      spare: { afterMs: 1000, keyOf: String },
      commit: async (items) => {
        if (items.includes(1)) throw failure(code)
        return items
      },
      giveUp: (item) => Promise.resolve(-item),
    })
    for (let i = 0; i < 5; i++) {
      assert.equal(await add(2), 2)
      await assert.rejects(add(1), { code })
    }
  }
})

for (const code of ['CONNECTION_CLOSED', 'ECONNREFUSED', '57P01', '40P01']) {
  test(`after ${code} the same items are tried again, and nobody hears of it`, async () => {
    let failures = 2
    const { add, batches } = doubling({
      commit: async (items) => {
        if (failures-- > 0) throw failure(code)
        return items
      },
    })
    assert.deepEqual(await Promise.all(upTo(3).map(add)), upTo(3))
    assert.deepEqual(batches, [upTo(3), upTo(3), upTo(3)])
  })
}

test('patience ends: then all are told of the loss, and the next commit is tried afresh', async () => {
  let isAway = true
  const { add, batches } = doubling({
    patienceMs: 120,
    commit: async (items) => {
      if (isAway) throw failure('ECONNREFUSED')
      return items
    },
  })
  const settled = await Promise.allSettled(upTo(3).map(add))
  // The second time it is tried after 50 ms, the third after 150, and then 120 are over.
  assert.ok(batches.length <= 3, `${batches.length} tries`)
  assert.ok(
    settled.every((one) => one.status === 'rejected' && (one.reason as { code: string }).code === 'ECONNREFUSED'),
  )
  // A lost connection says nothing about the items, so they are not tried one by one.
  assert.ok(batches.every((batch) => batch.length === 3))
  isAway = false
  assert.equal(await add(7), 7)
})

test('idle waits for everything that was added, also when it fails', async () => {
  const done: number[] = []
  const { add, idle } = doubling({
    max: 2,
    commit: async (items) => {
      await new Promise(setImmediate)
      if (items.includes(5)) throw failure('23514')
      done.push(...items)
      return items
    },
  })
  await idle()
  const all = Promise.allSettled(upTo(9).map(add))
  await idle()
  assert.deepEqual(done, [0, 1, 2, 3, 4, 6, 7, 8])
  await all
})

test('order holds over tens of thousands of items', async () => {
  const { add, batches } = doubling({ max: 4000 })
  await Promise.all(upTo(30_000).map(add))
  assert.deepEqual(batches.flat(), upTo(30_000))
})
