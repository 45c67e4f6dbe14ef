import assert from 'node:assert/strict'
import test from 'node:test'
import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import { createLog } from '@windlass/shared/log.ts'
import { createOrgLine, openLimitedSeats, type Weighed } from '../../engine/commit/org-line.ts'
import { untilPolled } from '../_kit/until.ts'

interface Due {
  runId: RunId
  orgId: OrgId
}

/** What is of org `a` has ids that begin with it. */
const item = (runId: string, weight = 1, isLimited = false): Weighed<Due> => ({
  item: { runId: runId as RunId, orgId: runId[0] as OrgId },
  weight,
  isLimited,
})
const limited = (runId: string, weight = 1) => item(runId, weight, true)

function aLine(free: string[] = []) {
  const log = createLog({ process: 'test' }, 'fatal' as never)
  const onFree = () => free.push('free')
  return createOrgLine<Due>({ log, of: 'test', most: 10, mostItems: 5, seats: openLimitedSeats(), onFree })
}

const idsOf = (some: readonly Due[]) => some.map(({ runId }) => runId)

/** Notes the runs of each transaction. */
function noting(pieces: string[][]) {
  return (some: Due[]) => {
    pieces.push(idsOf(some))
    return Promise.resolve()
  }
}

/** Notes the runs of each transaction, and holds those that have a run of this org until it is released. */
function holding(pieces: string[][], org: string) {
  const { promise, resolve } = Promise.withResolvers<void>()
  const act = async (some: Due[]) => {
    pieces.push(idsOf(some))
    if (some[0]!.orgId === org) await promise
  }
  return { act, release: resolve }
}

test('each transaction has the next of each org in turn, up to a weight and a number', async () => {
  const [line, pieces] = [aLine(), [] as string[][]]
  const act = noting(pieces)
  // Begins at once, before the others are there.
  line.add([item('x1')], act)
  line.add([item('a1', 6), item('a2', 6), item('a3', 6)], act)
  line.add([item('b1', 6), item('b2', 0)], act)
  line.add(
    ['c1', 'c2', 'c3', 'c4', 'c5'].map((id) => item(id, 0)),
    act,
  )
  await line.idle()
  assert.deepEqual(pieces, [['x1'], ['a1', 'b1'], ['c1', 'a2', 'b2'], ['c2', 'a3', 'c3'], ['c4', 'c5']])
  assert.deepEqual([line.here().size, line.held()], [0, []])
})

test('an org is here until its last one is done, and others are looked for then', async () => {
  const [free, seen] = [[] as string[], [] as string[]]
  const line = aLine(free)
  line.add([item('a1', 10), item('a2', 10), item('b1', 10)], ([first]) => {
    const here = [...line.here()].map(([org, own]) => `${org}${own.length}`)
    seen.push(`${first!.runId}: ${here.join()} ${line.held().join()} ${free.length}`)
    return Promise.resolve()
  })
  await line.idle()
  assert.deepEqual(seen, ['a1: a2,b1 a1 0', 'b1: a1,b1 b1 0', 'a2: a1 a2 1'])
  assert.equal(free.length, 2)
})

test('those that are taken out, and those that fail, make room', async (t) => {
  t.mock.method(process.stderr, 'write', () => true)
  const [line, pieces] = [aLine(), [] as string[][]]
  for (const isLimited of [false, true]) {
    const own = ['a1', 'a2', 'a3'].map((id) => item(id, 10, isLimited))
    line.add(own, (some, how) => {
      pieces.push(idsOf(some))
      assert.equal(how, isLimited)
      assert.deepEqual(line.takeOut('a' as OrgId, !isLimited), [])
      assert.deepEqual(idsOf(line.takeOut('a' as OrgId, isLimited)), ['a2', 'a3'])
      return Promise.reject(new Error('locked'))
    })
    await line.idle()
  }
  assert.deepEqual([pieces, line.here().size], [[['a1'], ['a1']], 0])
})

test('an org that waits for its own locks keeps nothing of others waiting', async () => {
  const [line, pieces] = [aLine(), [] as string[][]]
  const { act, release } = holding(pieces, 'a')
  line.add([limited('a1', 10), limited('a2', 10), limited('b1'), limited('b2'), item('c1')], act)
  await untilPolled('the others are done', () => line.here().size === 1)
  // Of each org alone, one at a time.
  assert.deepEqual(pieces, [['c1'], ['a1'], ['b1', 'b2']])
  assert.deepEqual(line.held(), ['a1'])
  release()
  await line.idle()
  assert.deepEqual([pieces.at(-1), line.here().size], [['a2'], 0])
})

test('orgs that hold their locks for long, however many they are, leave a turn to the others', async () => {
  const [line, pieces] = [aLine(), [] as string[][]]
  const slow = holding(pieces, 'a')
  const others = ['b', 'c', 'd', 'e'].map((org) => ({ org, ...holding(pieces, org) }))
  line.add([limited('a1')], slow.act)
  for (const { org, act } of others) line.add([limited(`${org}1`)], act)
  await untilPolled('all that may', () => pieces.length === 3)
  for (const { release } of others) release()
  await untilPolled('the next ones', () => line.here().size === 1)
  line.add([limited('x1'), limited('x2')], noting(pieces))
  await untilPolled('those of x', () => line.here().size === 1)
  slow.release()
  await line.idle()
  assert.deepEqual(pieces.length, 6)
})

test('what waits is dropped at the end, and what is under way is waited for', async () => {
  const [line, pieces] = [aLine(), [] as string[][]]
  const { act, release } = holding(pieces, 'a')
  line.add([limited('a1', 10), limited('a2', 10)], act)
  await untilPolled('it is under way', () => pieces.length === 1)
  let isStopped = false
  const stopping = line.stop().then(() => (isStopped = true))
  await new Promise((resolve) => setImmediate(resolve))
  assert.equal(isStopped, false)
  release()
  await stopping
  assert.deepEqual([pieces, line.here().size], [[['a1']], 0])
})
