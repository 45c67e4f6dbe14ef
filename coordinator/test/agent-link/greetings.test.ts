// Four agents that held 14,000 runs each and connected again and again kept everybody waiting for a second. No
// coordinator is here: its timers would be lost with those that are mocked, and it would not stop.
import assert from 'node:assert/strict'
import { test } from 'node:test'
import type { OrgId, RunnerId } from '@windlass/shared/ids.ts'
import { createGreetings } from '../../agent-link/greetings.ts'

const runner = (orgId: string, id: string) => ({ orgId: orgId as OrgId, id: id as RunnerId })
const settled = () => new Promise((resolve) => setImmediate(resolve))

test('an org greets two agents at once, and others do not wait for them', async () => {
  const greetings = createGreetings()
  const begun: string[] = []
  const greet = async (orgId: string, id: string) => {
    const end = await greetings.take(runner(orgId, id))
    begun.push(id)
    return end!
  }
  const [first] = await Promise.all([greet('a', 'a1'), greet('a', 'a2')])
  const third = greet('a', 'a3')
  void greet('b', 'b1')
  await settled()
  assert.deepEqual(begun, ['a1', 'a2', 'b1'])
  first(14_000)
  await third
})

test('an org rests after an agent that came with many runs twice in a minute, and without a seat', async (t) => {
  t.mock.timers.enable({ apis: ['setTimeout'] })
  const greetings = createGreetings()
  const greetBoth = async (org: string) => {
    const ends = await Promise.all([1, 2].map((n) => greetings.take(runner(org, `${org}${n}`))))
    for (const end of ends) end!(14_000)
  }
  for (const org of ['a', 'b', 'c', 'd']) await greetBoth(org)
  for (const org of ['a', 'b', 'c', 'd']) await greetBoth(org)
  const begun: string[] = []
  for (const id of ['a1', 'a3']) void greetings.take(runner('a', id)).then(() => begun.push(id))
  await settled()
  assert.deepEqual(begun, [])
  t.mock.timers.tick(60_000)
  await settled()
  assert.deepEqual(begun, ['a1', 'a3'])
})

test('who connects again while it waits has its place, and nothing is kept for its former connection', async () => {
  const greetings = createGreetings()
  const ends = await Promise.all([greetings.take(runner('a', 'a1')), greetings.take(runner('a', 'a2'))])
  const ways = [1, 2, 3].map(() => greetings.take(runner('a', 'a3')))
  const next = greetings.take(runner('a', 'a4'))
  assert.deepEqual(await Promise.all(ways.slice(0, 2)), [undefined, undefined])
  ends[0]!(1)
  const end = await ways[2]
  end!(1)
  assert.ok(await next)
})
