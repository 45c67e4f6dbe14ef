import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createRounds } from '../../limits/rounds.ts'
import { createSeats } from '../../limits/seats.ts'

/** Looks that end when they are told to; each has its key, in the order in which they begin. */
function looks(most = { org: 2, all: 3 }, atOnce?: number) {
  const rounds = createRounds(createSeats(most), { ...(atOnce && { atOnce }) })
  const begun: { key: string; end: PromiseWithResolvers<void> }[] = []
  const look = (key: string) => () => {
    const end = Promise.withResolvers<void>()
    begun.push({ key, end })
    return end.promise
  }
  const settle = () => new Promise(setImmediate)
  return {
    ask: (key: string, org = 'a') => rounds.share(key, org, look(key)),
    keys: async () => (await settle(), begun.map(({ key }) => key).join('')),
    end: (n: number) => begun[n]!.end.resolve(),
    fail: (n: number) => begun[n]!.end.reject(new Error('the database is away')),
  }
}

test('who asks while a look is under way shares the next one, which begins after it', async () => {
  const { ask, keys, end } = looks()
  const ended: number[] = []
  void ask('x').then(() => ended.push(0))
  assert.equal(await keys(), 'x')
  for (let n = 1; n <= 5; n++) void ask('x').then(() => ended.push(n))
  assert.equal(await keys(), 'x')
  end(0)
  assert.equal(await keys(), 'xx')
  assert.deepEqual(ended, [0])
  end(1)
  assert.equal(await keys(), 'xx')
  assert.deepEqual(ended, [0, 1, 2, 3, 4, 5])
  void ask('x')
  assert.equal(await keys(), 'xxx')
})

test('who asks while a look waits for its seat shares that one', async () => {
  const { ask, keys, end } = looks({ org: 1, all: 1 })
  void ask('x')
  assert.equal(await keys(), 'x')
  const [one, two] = [ask('y'), ask('y')]
  void ask('z', 'b')
  assert.equal(await keys(), 'x')
  end(0)
  assert.equal(await keys(), 'xy')
  end(1)
  await Promise.all([one, two])
  assert.equal(await keys(), 'xyz')
})

test('a look that fails does so for all who share it, and the next one begins', async () => {
  const { ask, keys, end, fail } = looks()
  const first = ask('x')
  assert.equal(await keys(), 'x')
  const later = ask('x')
  fail(0)
  await assert.rejects(first, /away/)
  assert.equal(await keys(), 'xx')
  end(1)
  await later
})

test('as many looks of one key are under way as are allowed, and the next one takes a slot that is free', async () => {
  const { ask, keys, end } = looks({ org: 9, all: 9 }, 2)
  void ask('x')
  assert.equal(await keys(), 'x')
  void ask('x')
  assert.equal(await keys(), 'xx')
  const [third, shared] = [ask('x'), ask('x')]
  assert.equal(await keys(), 'xx')
  end(0)
  end(1)
  assert.equal(await keys(), 'xxx')
  void ask('x')
  assert.equal(await keys(), 'xxxx')
  void ask('x')
  assert.equal(await keys(), 'xxxx')
  end(2)
  await Promise.all([third, shared])
  assert.equal(await keys(), 'xxxxx')
})
