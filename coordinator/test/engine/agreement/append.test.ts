// The short way of what agents report writes what the rules write, or nothing.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { isDeepStrictEqual } from 'node:util'
import * as fc from 'fast-check'
import type { RunId } from '@windlass/shared/ids.ts'
import { amount } from '@windlass/shared/test/_kit/rounds.ts'
import { appendPlain } from '../../../engine/commit/append.ts'
import { applyBatches, applyLocked } from '../../../engine/commit/apply.ts'
import type { Applied } from '../../../engine/rules/batch.ts'
import { aCoordinatorOfItsOwn, type TestCoordinator } from '../../_kit/coordinator.ts'
import { dropInvariants } from '../../_kit/database.ts'
import { playCases } from '../../_kit/play-cases.ts'
import { aRunnerRow } from '../../_kit/queue.ts'
import { anyBatch, batchesOf, EVENT_DATA_BYTES, nextBatch, type SaidBatch } from '../../_kit/random-batches.ts'
import {
  anyRun,
  executed,
  type Known,
  openKnown,
  type Owner,
  type RunState,
  writeRuns,
} from '../../_kit/random-runs.ts'

let c: TestCoordinator
let owner: Owner
let known: (ids: readonly RunId[]) => Promise<Known[]>

before(async () => {
  c = await aCoordinatorOfItsOwn({}, { config: { maxEventDataBytes: EVENT_DATA_BYTES } })
  // Programs choose the places of their calls.
  await dropInvariants(c.db)
  known = await openKnown(c.db)
  const [ours, other] = [await aRunnerRow(c.db, c), await aRunnerRow(c.db, c)]
  owner = { orgId: c.orgId, poolId: c.poolId, ours, other }
})
after(() => c.stop())

/** A run, and what is said of it in each of two commits: two cases. */
interface Case {
  run: RunState
  said: [SaidBatch, SaidBatch]
}

const casesOf = (run: fc.Arbitrary<RunState>, batch: fc.Arbitrary<SaidBatch>) =>
  fc.noBias(fc.array(fc.record({ run, said: fc.tuple(batch, batch) }), { minLength: 1, maxLength: 200, size: 'max' }))
/** In a group, on average. */
const MEAN = 200

/** Two copies of these runs: one for the short way, one for the rules. */
async function copies(cases: readonly Case[]) {
  const states = cases.map(({ run }) => run)
  const ids = await writeRuns(c.db, owner, [...states, ...states])
  const batches = cases.map(({ said, run }) => batchesOf(said, run, owner))
  const of = (its: readonly RunId[]) => (turn: number) => its.map((id, i) => batches[i]![turn]!(id))
  const [short, long] = [ids.slice(0, cases.length), ids.slice(cases.length)]
  return { short: { ids: short, batches: of(short) }, long: { ids: long, batches: of(long) } }
}

/** Whether some of it had been there is told more often by the short way: it looks closer when only a part was new. */
const plain = ({ kind, ...rest }: Applied) => (kind === 'stale' ? kind : `${kind} ${(rest as { seq: number }).seq}`)

function assertSame(actual: readonly Known[], expected: readonly Known[], what: string) {
  for (const [i, one] of actual.entries())
    if (!isDeepStrictEqual(one, expected[i])) assert.deepEqual(one, expected[i], `${what}, case ${i}`)
}

/** Of groups of runs so many that there are so many cases. */
const played = (run: fc.Arbitrary<RunState>, batch: fc.Arbitrary<SaidBatch>, test: number, storm: number) => ({
  group: casesOf(run, batch),
  groups: amount({ test: test / MEAN, storm: storm / MEAN }),
  size: (cases: readonly Case[]) => 2 * cases.length,
})

test('what the short way writes is what the rules write', async (t) => {
  await playCases(t, played(executed, nextBatch, 800, 44_000), async (cases) => {
    const { short, long } = await copies(cases)
    for (const turn of [0, 1]) {
      const [batches, others] = [short.batches(turn), long.batches(turn)]
      const answers = await appendPlain(c.deps, batches)
      assert.ok(answers, 'nothing of it is for the long way')
      assert.deepEqual(answers.map(plain), (await applyLocked(c.deps, others)).map(plain))
      assertSame(await known(short.ids), await known(long.ids), `turn ${turn}`)
    }
  })
})

test('what is taken the short way in part ends as if the rules had taken it', async (t) => {
  await playCases(t, played(anyRun, anyBatch, 1000, 55_000), async (cases) => {
    const { short, long } = await copies(cases)
    for (const turn of [0, 1]) {
      const [batches, others] = [short.batches(turn), long.batches(turn)]
      const before = await known(short.ids)
      const appended = await appendPlain(c.deps, batches)
      const midway = await known(short.ids)
      const answers = await applyLocked(c.deps, others)
      const expected = await known(long.ids)
      const touched = expected.map((state, i) =>
        appended || !isDeepStrictEqual(midway[i], before[i]) ? state : before[i]!,
      )
      assertSame(midway, touched, `the short way of turn ${turn}`)
      const outcome = appended ?? (await applyLocked(c.deps, batches))
      assert.deepEqual(outcome.map(plain), answers.map(plain))
      assertSame(await known(short.ids), expected, `turn ${turn}`)
    }
  })
})

test('two batches of a run in one commit are taken as one after the other', async (t) => {
  await playCases(t, played(anyRun, anyBatch, 200, 12_000), async (cases) => {
    const { short, long } = await copies(cases)
    const answers = await applyBatches(c.deps, [...short.batches(0), ...short.batches(1)])
    const others: Applied[] = []
    for (const turn of [0, 1]) others.push(...(await applyLocked(c.deps, long.batches(turn))))
    assert.deepEqual(answers.map(plain), others.map(plain))
    assertSame(await known(short.ids), await known(long.ids), 'both batches')
  })
})
