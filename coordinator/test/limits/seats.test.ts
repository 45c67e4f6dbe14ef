import assert from 'node:assert/strict'
import { test } from 'node:test'
import { createSeats } from '../../limits/seats.ts'
import { VALUES } from '../../http/server.ts'
import { createSlowOrgs } from '../../limits/slow-orgs.ts'

/** Asks for seats in turn; answers with who sits, in the order of sitting down. */
function guests(most: { org: number; all: number }, now?: () => number) {
  const seats = createSeats(most, now && createSlowOrgs(now))
  const seated: { org: string; leave: () => void }[] = []
  const ask = (org: string) => void seats.take(org).then((leave) => seated.push({ org, leave }))
  const who = async () => {
    await new Promise(setImmediate)
    return seated.map(({ org }) => org).join('')
  }
  return { ask, who, leave: (n: number) => seated[n]!.leave() }
}

test('an org has its own number of seats, and the others theirs besides', async () => {
  const { ask, who } = guests({ org: 2, all: 3 })
  for (const org of 'aaaabb') ask(org)
  assert.equal(await who(), 'aab')
})

test('whoever leaves makes room for the next, each org in its turn', async () => {
  const { ask, who, leave } = guests({ org: 2, all: 2 })
  for (const org of 'aaaab') ask(org)
  assert.equal(await who(), 'aa')
  leave(0)
  leave(0)
  assert.equal(await who(), 'aaa')
  leave(1)
  assert.equal(await who(), 'aaab')
  leave(2)
  assert.equal(await who(), 'aaaba')
})

test('any number of orgs whose acts take long leave one seat to those whose acts are short', async () => {
  let now = 0
  const { ask, who, leave } = guests({ org: 3, all: 4 }, () => now)
  for (let n = 0; n < 6; n++) {
    ask('abcdef'[n]!)
    assert.equal((await who()).length, n + 1)
    now += 2000
    leave(n)
  }
  for (const org of 'abcdef') ask(org)
  assert.equal(await who(), 'abcdefabc')
  for (const org of 'vv') ask(org)
  assert.equal(await who(), 'abcdefabcv')
  // An org whose acts were short comes first,
  leave(6)
  assert.equal(await who(), 'abcdefabcvv')
  // and stays so, however much it does.
  for (let n = 9; n < 109; n++) {
    now += 49
    leave(n)
    ask('v')
    assert.equal((await who()).length, n + 3)
  }
})

test('an org whose acts took long has a seat, however many short acts others have', async () => {
  let now = 0
  const { ask, who, leave } = guests({ org: 3, all: 4 }, () => now)
  ask('s')
  assert.equal(await who(), 's')
  now = 2000
  leave(0)
  for (const org of 'eeeee') ask(org)
  assert.equal(await who(), 'seee')
  ask('s')
  assert.equal(await who(), 'seees')
  ask('s')
  assert.equal(await who(), 'seees')
  for (const [n, seated] of [
    [1, 'seeese'],
    [2, 'seeesee'],
    [3, 'seeesees'],
  ] as const) {
    leave(n)
    assert.equal(await who(), seated, 'the short acts come first while a slow org has a seat')
  }
})

test('an org whose acts took long has all seats again when it has been quiet', async () => {
  let now = 0
  const { ask, who, leave } = guests({ org: 3, all: 4 }, () => now)
  for (const org of 'aabb') ask(org)
  assert.equal(await who(), 'aabb')
  now = 2000
  for (const n of [0, 1, 2, 3]) leave(n)
  for (const org of 'aabb') ask(org)
  assert.equal(await who(), 'aabbaab')
  for (const n of [4, 5, 6]) leave(n)
  assert.equal(await who(), 'aabbaabb')
  leave(7)
  now = 60_000
  for (const org of 'aabb') ask(org)
  assert.equal(await who(), 'aabbaabbaabb')
})

test('an org is slow while its acts last, and not only when they have ended', () => {
  let at = 0
  const orgs = createSlowOrgs(() => at)
  const end = [orgs.begin('a'), orgs.begin('a')]
  orgs.begin('b')()
  at = 400
  assert.equal(orgs.isSlow('a'), true)
  assert.equal(orgs.isSlow('b'), false)
  for (const each of end) each()
  at = 60_000
  assert.equal(orgs.isSlow('a'), false)
})

test('whoever takes more has fewer seats beside it, and never more than its org has', async () => {
  const seats = createSeats({ org: 4, all: 6 })
  const held: (() => void)[] = []
  let seated = ''
  const ask = async (org: string, size: number) => {
    const leave = await seats.takeInTime(org, 60_000, size)
    seated += `${org}${size} `
    held.push(leave!)
  }
  const asks = [ask('a', 3), ask('a', 100), ask('a', 1), ask('b', 4), ask('c', 3)]
  await new Promise(setImmediate)
  // What is behind the large one of its org waits too, or that would never have its turn.
  assert.equal(seated, 'a3 c3 ')
  held[1]!()
  await new Promise(setImmediate)
  assert.equal(seated, 'a3 c3 ')
  held[0]!()
  await new Promise(setImmediate)
  assert.equal(seated, 'a3 c3 a100 ')
  held[2]!()
  await Promise.all(asks)
  assert.equal(seated, 'a3 c3 a100 b4 a1 ')
})

test('who waits in vain has no seat later, and is in nobody’s way', async () => {
  const seats = createSeats({ org: 2, all: 2 })
  const leave = await seats.take('a')
  const late = seats.takeInTime('a', 5, 2)
  const small = seats.takeInTime('a', 60_000, 1)
  assert.equal(await late, undefined)
  const second = await small
  second!()
  leave()
  assert.ok(await seats.takeInTime('b', 60_000, 2))
})

test('orgs whose acts take long leave a share to the others', async () => {
  let now = 0
  const seats = createSeats(
    { org: 4, all: 8, slow: 6 },
    createSlowOrgs(() => now),
  )
  const held = [await seats.takeInTime('a', 60_000, 4), await seats.takeInTime('b', 60_000, 2)]
  now = 2000
  assert.equal(await seats.takeInTime('b', 5, 1), undefined)
  assert.ok(await seats.takeInTime('v', 60_000, 2))
  for (const leave of held) leave!()
})

test('beside orgs whose requests take long the largest body of another one is let in', async () => {
  let now = 0
  const seats = createSeats(
    VALUES,
    createSlowOrgs(() => now),
  )
  const slow = ['a', 'b', 'c', 'd']
  for (const org of slow) {
    const leave = await seats.takeInTime(org, 60_000, 1)
    now += 2000
    leave!()
  }
  for (const org of slow) void seats.takeInTime(org, 1000, (VALUES.org * 5) / 6)
  assert.ok(await seats.takeInTime('v', 1000, VALUES.org))
})

test('who goes away has no seat later, and is in nobody’s way', async () => {
  const seats = createSeats({ org: 2, all: 2 })
  const leave = await seats.take('a')
  const gone = new AbortController()
  const large = seats.takeInTime('a', 60_000, 2, gone.signal)
  const behind = seats.takeInTime('a', 60_000, 1)
  gone.abort()
  assert.equal(await large, undefined)
  assert.equal(await seats.takeInTime('b', 60_000, 1, gone.signal), undefined)
  const second = await behind
  second!()
  leave()
  assert.ok(await seats.takeInTime('b', 60_000, 2))
})
