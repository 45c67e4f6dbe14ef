import assert from 'node:assert/strict'
import { test } from 'node:test'
import { doubling } from '../_kit/doubling.ts'

const upTo = (n: number) => Array.from({ length: n }, (_, i) => i)

test('each org has its turn in a commit, however much another has brought', async () => {
  const { add, batches, idle } = doubling({ orgOf: (item) => String(item % 2) })
  // A hundred of one org, and then two of another.
  const all = [...upTo(100).map((n) => 2 * n), 1, 3].map(add)
  await Promise.all([...all, idle()])
  assert.ok(
    [1, 3].every((item) => batches[0]!.includes(item)),
    `the first commit has ${batches[0]!.join()}`,
  )
  assert.equal(batches.length, 11)
  const ofTheFirst = batches.flat().filter((item) => item % 2 === 0)
  assert.deepEqual(
    ofTheFirst,
    upTo(100).map((n) => 2 * n),
  )
})

test('a heavy item costs its org the turns of as many light ones', async () => {
  const { add, batches } = doubling({
    max: 20,
    weight: (item) => (item >= 100 ? 10 : 1),
    orgOf: (item) => (item >= 100 ? 'heavy' : 'light'),
  })
  await Promise.all([100, 101, 102, ...upTo(20)].map(add))
  assert.deepEqual(
    batches[0]!.filter((item) => item < 100),
    upTo(10),
  )
})

test('where orgs are kept apart, one that waits for a lock keeps no other waiting', async () => {
  const held = Promise.withResolvers<void>()
  const { add, batches, idle } = doubling({
    lanes: 2,
    isOrgAlone: true,
    orgOf: (item) => (item < 10 ? 'waits' : `org-${item % 2}`),
    spare: { afterMs: 1, keyOf: (item) => (item < 10 ? 'waits' : `org-${item % 2}`) },
    commit: async (items) => {
      if (items.includes(1)) await held.promise
      return items
    },
  })
  const waiting = [1, 2].map(add)
  await Promise.all([10, 11, 12].map(add))
  held.resolve()
  await Promise.all([...waiting, idle()])
  assert.deepEqual(batches, [[1, 2], [10, 12], [11]])
})

test('orgs that are slow commit alone, and leave a lane to the others', async () => {
  const held = Promise.withResolvers<void>()
  const isSlow = (orgId: string) => orgId.startsWith('slow')
  const { add, batches, idle } = doubling({
    lanes: 3,
    // Further lanes are for slow ones only: no other commit takes as long.
    spare: { afterMs: 60_000, keyOf: String },
    orgOf: (item) => (item < 10 ? `slow-${item % 3}` : `org-${item % 2}`),
    slow: { begin: () => () => {}, isApart: isSlow, isSlow },
    commit: async (items) => {
      if (items[0]! < 10) await held.promise
      return items
    },
  })
  const slow = [0, 1, 2, 3].map(add)
  await Promise.all([10, 11, 12].map(add))
  await add(13)
  assert.deepEqual(batches, [[0, 3], [1], [10, 11, 12], [13]])
  held.resolve()
  await Promise.all([...slow, idle()])
  assert.deepEqual(batches.at(-1), [2])
})

test('what is refused of one org is parted from the others first, and what they add meanwhile passes it', async () => {
  const held = Promise.withResolvers<void>()
  const { add, batches, idle } = doubling({
    max: 128,
    lanes: 2,
    spare: { afterMs: 60_000, keyOf: String },
    orgOf: (item) => (item < 64 ? 'bad' : `org-${item}`),
    commit: async (items) => {
      // What is left is tried after the others have passed.
      if (items.length <= 8 && items[0]! < 64) await held.promise
      if (items.some((item) => item < 64)) throw Object.assign(new Error('refused'), { code: '23514' })
      return items
    },
  })
  const bad = Promise.allSettled(upTo(64).map(add))
  assert.deepEqual(await Promise.all([64, 65, 66].map(add)), [64, 65, 66])
  assert.ok(batches.length <= 8, `${batches.length} tries until the others were committed`)
  assert.deepEqual(await Promise.all([64, 67].map(add)), [64, 67])
  held.resolve()
  assert.ok((await bad).every(({ status }) => status === 'rejected'))
  await idle()
})

test('orgs whose commits are tried in parts take turns, and what they add meanwhile commits alone', async () => {
  const org = (item: number) => (item < 64 ? 'many' : item < 100 ? 'few' : 'quiet')
  const parted = Promise.withResolvers<void>()
  const { add, batches, idle } = doubling({
    max: 128,
    lanes: 3,
    spare: { afterMs: 1, keyOf: String },
    orgOf: org,
    slow: { begin: () => () => {}, isApart: () => false, isSlow: () => false },
    commit: async (items) => {
      if (items.length === 2) parted.resolve()
      await new Promise(setImmediate)
      // Each alone would do.
      if (items.filter((item) => item < 100).length > 1) throw Object.assign(new Error('too much'), { code: '23514' })
      return items
    },
  })
  const many = Promise.all(upTo(64).map(add))
  await parted.promise
  const triesBefore = batches.length
  await Promise.all([64, 65].map(add))
  const triesMeanwhile = batches.length - triesBefore
  assert.ok(triesMeanwhile <= 12, `${triesMeanwhile} tries until two of another org were committed`)
  await Promise.all([many, add(100), idle()])
  const together = batches.filter((batch) => new Set(batch.map(org)).size > 1)
  assert.deepEqual(together, [])
})

test('items of one key that are tried in parts keep their order, and nothing of it passes them', async () => {
  const { add, batches, idle } = doubling({
    max: 64,
    lanes: 3,
    spare: { afterMs: 1, keyOf: (item) => String(item % 4) },
    commit: async (items) => {
      await new Promise(setImmediate)
      if (items.includes(21)) throw Object.assign(new Error('refused'), { code: '23514' })
      return items
    },
  })
  const first = upTo(40).map((item) => add(item).catch(() => -1))
  await new Promise(setImmediate)
  const later = [41, 45, 42].map(add)
  const answers = await Promise.all([...first, ...later, idle()])
  assert.equal(answers[21], -1)
  const committed = batches.filter((batch) => !batch.includes(21)).flat()
  for (const key of upTo(4)) {
    const own = committed.filter((item) => item % 4 === key)
    assert.deepEqual(
      own,
      own.toSorted((a, b) => a - b),
    )
  }
  assert.equal(committed.length, 42)
})

test('a commit that begins while another waits looks at no more items than it takes', async () => {
  const held = Promise.withResolvers<void>()
  let looks = 0
  const { add, batches, idle } = doubling({
    lanes: 2,
    spare: {
      afterMs: 1,
      keyOf: (item) => {
        looks++
        return String(item % 100)
      },
    },
    commit: async (items) => {
      if (items.includes(0)) await held.promise
      return items
    },
  })
  const all = upTo(2000).map(add)
  const free = all.filter((_, n) => n % 100 >= 10)
  await Promise.all(free)
  assert.ok(looks <= 3 * 2000, `${looks} looks at 2,000 items`)
  held.resolve()
  await Promise.all([...all, idle()])
  const ofKey = (key: number) => batches.flat().filter((item) => item % 100 === key)
  for (const key of upTo(100))
    assert.deepEqual(
      ofKey(key),
      ofKey(key).toSorted((a, b) => a - b),
    )
})

test('items of one key of several orgs are never in two commits at once', async () => {
  const held = Promise.withResolvers<void>()
  const { add, batches } = doubling({
    lanes: 2,
    orgOf: (item) => String(item % 10),
    spare: { afterMs: 1, keyOf: (item) => (item < 100 ? 'same' : 'other') },
    commit: async (items) => {
      if (items.includes(1)) await held.promise
      return items
    },
  })
  const first = add(1)
  await new Promise(setImmediate)
  const second = add(2)
  assert.equal(await add(102), 102)
  assert.deepEqual(batches, [[1], [102]])
  held.resolve()
  assert.deepEqual(await Promise.all([first, second]), [1, 2])
})

test('what waits is taken out until its commit begins, and leaves the others their order', async () => {
  const held = Promise.withResolvers<void>()
  const { add, addWaiting, batches, idle } = doubling({
    lanes: 2,
    isOrgAlone: true,
    orgOf: () => 'org',
    spare: { afterMs: 1, keyOf: () => 'org' },
    commit: async (items) => {
      if (items.includes(1)) await held.promise
      return items
    },
  })
  const gone = new Error('others needed the room')
  const first = addWaiting(1)
  await new Promise(setImmediate)
  const waiting = [2, 3, 4, 5].map(addWaiting)
  first.giveUp(gone)
  for (const n of [3, 1]) waiting[n]!.giveUp(gone)
  for (const n of [3, 1]) await assert.rejects(waiting[n]!.result, gone)
  assert.deepEqual(
    [first, ...waiting].map(({ hasBegun }) => hasBegun),
    [true, false, false, false, false],
  )
  held.resolve()
  assert.deepEqual(await Promise.all([first, waiting[0]!, waiting[2]!].map(({ result }) => result)), [1, 2, 4])
  assert.deepEqual([batches, waiting[0]!.hasBegun], [[[1], [2, 4]], true])
  await idle()
  // Nothing is left of those that were taken out, and whoever waits for the end hears of it.
  const alone = addWaiting(6)
  const isIdle = idle()
  alone.giveUp(gone)
  await assert.rejects(alone.result, gone)
  await isIdle
  assert.equal(await add(7), 7)
})

test('all that waits behind a commit may be taken out, and others come after it', async () => {
  const held = Promise.withResolvers<void>()
  const { add, addWaiting, batches, idle } = doubling({
    lanes: 2,
    spare: { afterMs: 1, keyOf: (item) => String(item % 10) },
    commit: async (items) => {
      if (items.includes(1)) await held.promise
      return items
    },
  })
  const first = add(1)
  await new Promise(setImmediate)
  const behind = addWaiting(11)
  // It has been looked at, and its key was busy.
  assert.equal(await add(2), 2)
  behind.giveUp(new Error('gone'))
  await assert.rejects(behind.result)
  const later = add(21)
  held.resolve()
  assert.deepEqual(await Promise.all([first, later, add(31)]), [1, 21, 31])
  await idle()
  assert.deepEqual(batches.flat(), [1, 2, 21, 31])
})
