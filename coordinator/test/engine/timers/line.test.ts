import assert from 'node:assert/strict'
import test from 'node:test'
import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import { createLog } from '@windlass/shared/log.ts'
import { createTimerLine, type Weighed } from '../../../engine/commit/timer-line.ts'
import type { Upcoming } from '../../../engine/store/timers.ts'

/** The timers of org `a` have ids that begin with it. */
const timer = (runId: string, weight = 1): Weighed => ({
  timer: { runId: runId as RunId, orgId: runId[0] as OrgId, kind: 'wall-timeout', n: 0, inMs: 0 },
  weight,
})

function aLine(free: string[] = []) {
  const log = createLog({ process: 'test' }, 'fatal' as never)
  return createTimerLine({ log, most: 10, mostTimers: 5, onFree: () => free.push('free') })
}

/** Notes the runs of each transaction. */
function noting(pieces: string[][]) {
  return (due: Upcoming[]) => {
    pieces.push(due.map(({ runId }) => runId))
    return Promise.resolve()
  }
}

test('each transaction has the next of each org in turn, up to a weight and a number', async () => {
  const [line, pieces] = [aLine(), [] as string[][]]
  const act = noting(pieces)
  // Begins at once, before the others are there.
  line.add([timer('x1')], act)
  line.add([timer('a1', 6), timer('a2', 6), timer('a3', 6)], act)
  line.add([timer('b1', 6), timer('b2', 0)], act)
  line.add(
    ['c1', 'c2', 'c3', 'c4', 'c5'].map((id) => timer(id, 0)),
    act,
  )
  await line.idle()
  assert.deepEqual(pieces, [['x1'], ['a1', 'b1'], ['c1', 'a2', 'b2'], ['c2', 'a3', 'c3'], ['c4', 'c5']])
  assert.deepEqual([line.orgs(), line.held()], [[], []])
})

test('an org is here until its last one is done, and others are looked for then', async () => {
  const [free, seen] = [[] as string[], [] as string[]]
  const line = aLine(free)
  line.add([timer('a1', 10), timer('a2', 10), timer('b1', 10)], ([{ runId } = timer('').timer]) => {
    seen.push(`${runId}: ${line.orgs().join()} ${line.held().join()} ${free.length}`)
    return Promise.resolve()
  })
  await line.idle()
  assert.deepEqual(seen, ['a1: a,b a1 0', 'b1: a,b b1 0', 'a2: a a2 1'])
  assert.equal(free.length, 2)
})

test('those that are taken out, and those that fail, make room', async (t) => {
  t.mock.method(process.stderr, 'write', () => true)
  const [line, pieces] = [aLine(), [] as string[][]]
  line.add([timer('a1', 10), timer('a2', 10), timer('a3', 10)], (due) => {
    pieces.push(due.map(({ runId }) => runId))
    assert.deepEqual(
      line.takeOut('a' as OrgId).map(({ runId }) => runId),
      ['a2', 'a3'],
    )
    return Promise.reject(new Error('locked'))
  })
  await line.idle()
  assert.deepEqual([pieces, line.orgs()], [[['a1']], []])
})
