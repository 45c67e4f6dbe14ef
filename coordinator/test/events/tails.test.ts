import assert from 'node:assert/strict'
import { test } from 'node:test'
import { setFlagsFromString } from 'node:v8'
import { runInNewContext } from 'node:vm'
import { createLog } from '@windlass/shared/log.ts'
import { createTails, READ_SEATS, type Reader } from '../../events/live.ts'
import { LogPage } from '../../events/page.ts'
import { createSeats } from '../../limits/seats.ts'
import { untilPolled } from '../_kit/until.ts'

const HOUR_MS = 3_600_000
setFlagsFromString('--expose-gc')
const collectGarbage = runInNewContext('gc') as () => void

const quick: Reader = { take: () => undefined }

/** Logs of one event each. Their reads end when they are told to, and are named by their logs as they begin. */
function logs(most: { org: number; all: number } = READ_SEATS) {
  const seats = createSeats(most)
  let asked = 0
  const take = (orgId: string) => {
    asked++
    return seats.take(orgId)
  }
  const tails = createTails(createLog({}, 'error'), HOUR_MS, { take })
  const pages: WeakRef<LogPage>[] = []
  const begun: { id: string; end: PromiseWithResolvers<void> }[] = []

  const aLog = (id: string) => ({
    id,
    orgId: id[0]!,
    async after() {
      const end = Promise.withResolvers<void>()
      begun.push({ id, end })
      await end.promise
      const page = new LogPage([{ cursor: 1, at: 0, channel: 'log', type: 'log.stdout', dataText: '{}' }])
      pages.push(new WeakRef(page))
      return { page, end: 1, isOver: false }
    },
  })

  return {
    tails,
    /** Logs of the orgs `a` and `b` are called `a1`, `b1`. */
    follow: (id: string, reader = quick) => tails.follow(aLog(id), 0, reader),
    reads: async () => {
      await new Promise(setImmediate)
      return begun.map(({ id }) => id).join(' ')
    },
    end: (n: number) => begun[n]!.end.resolve(),
    fail: (n: number) => begun[n]!.end.reject(new Error('the database is away')),
    asked: () => asked,
    pagesInMemory: async () => {
      await new Promise(setImmediate)
      collectGarbage()
      return pages.filter((page) => page.deref()).length
    },
  }
}

test('two logs of an org are read at once, and those of another org do not wait for them', async () => {
  const { follow, reads, end } = logs()
  for (const id of ['a1', 'a2', 'a3', 'a4', 'a5', 'b1']) follow(id)
  assert.equal(await reads(), 'a1 a2 b1')
  end(1)
  assert.equal(await reads(), 'a1 a2 b1 a3')
  end(0)
  end(3)
  assert.equal(await reads(), 'a1 a2 b1 a3 a4 a5')
})

test('orgs take turns where all seats are taken', async () => {
  const { follow, reads, end } = logs({ org: 1, all: 1 })
  for (const id of ['a1', 'a2', 'a3', 'b1', 'c1']) follow(id)
  for (let n = 0; n < 4; n++) {
    await reads()
    end(n)
  }
  assert.equal(await reads(), 'a1 a2 b1 c1 a3')
})

test('a read that fails gives its seat back', async () => {
  const { follow, reads, end, fail } = logs()
  for (const id of ['a1', 'a2', 'a3', 'a4']) follow(id)
  await reads()
  fail(0)
  assert.equal(await reads(), 'a1 a2 a3')
  fail(1)
  end(2)
  assert.equal(await reads(), 'a1 a2 a3 a4')
})

test('a log that its last reader leaves while it waits for a seat is not read, and holds up nobody', async () => {
  const { tails, follow, reads, end } = logs()
  const [, , third, fourth] = ['a1', 'a2', 'a3', 'a4', 'a5', 'a6'].map((id) => follow(id))
  await reads()
  third!.leave()
  fourth!.leave()
  assert.equal(tails.readers(), 4)
  end(0)
  end(1)
  assert.equal(await reads(), 'a1 a2 a5 a6')
  follow('a3')
  end(2)
  assert.equal(await reads(), 'a1 a2 a5 a6 a3')
})

test('readers and rings that come while a log waits for its seat share its next read', async () => {
  const { tails, follow, reads, end } = logs()
  const seen: number[] = []
  const noted = (n: number): Reader => ({ take: () => void seen.push(n) })
  for (const id of ['a1', 'a2']) follow(id)
  for (let n = 1; n <= 3; n++) follow('a3', noted(n))
  await reads()
  tails.ring('a3')
  for (let n = 0; n < 3; n++) {
    end(n)
    assert.equal(await reads(), 'a1 a2 a3')
  }
  assert.deepEqual(seen, [1, 2, 3])
})

test('a log without news takes no seat, nor one whose readers have not taken what they got', async () => {
  const { tails, follow, reads, end, asked } = logs()
  const taken = Promise.withResolvers<void>()
  follow('a1', { take: () => taken.promise })
  for (const id of ['a2', 'a3']) follow(id)
  for (let n = 0; n < 3; n++) {
    await reads()
    end(n)
  }
  assert.equal(await reads(), 'a1 a2 a3')
  tails.ring('a1')
  await reads()
  assert.equal(asked(), 3)
  taken.resolve()
  assert.equal(await reads(), 'a1 a2 a3 a1')
  assert.equal(asked(), 4)
})

test('what was read of a log is gone while it waits for its next seat', async () => {
  const { tails, follow, reads, end, asked, pagesInMemory } = logs()
  for (const id of ['a1', 'a2']) follow(id)
  await reads()
  for (const id of ['a3', 'a4', 'a5', 'a6']) follow(id)
  for (const id of ['a1', 'a2']) tails.ring(id)
  end(0)
  end(1)
  await untilPolled('the first ones to wait again', async () => (await reads(), asked() === 8))
  assert.equal(await reads(), 'a1 a2 a3 a4')
  assert.equal(await pagesInMemory(), 0)
})
