// A heartbeat renews what its runner has of what it names, and nothing else.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import * as fc from 'fast-check'
import type { RunId } from '@windlass/shared/ids.ts'
import { amount } from '@windlass/shared/test/_kit/rounds.ts'
import type { Placement } from '@windlass/shared/wire/agent.ts'
import type { Database } from '../../../db/client.ts'
import { beat } from '../../../engine/store/leases.ts'
import { dropInvariants, testDatabase } from '../../_kit/database.ts'
import { playCases } from '../../_kit/play-cases.ts'
import { aPoolRow, aRunnerRow } from '../../_kit/queue.ts'
import { anyRun, type Owner, type RunState, writeRuns } from '../../_kit/random-runs.ts'

let database: Database
let owner: Owner

before(async () => {
  database = await testDatabase()
  await dropInvariants(database.db)
  const pool = await aPoolRow(database.db)
  owner = { ...pool, ours: await aRunnerRow(database.db, pool), other: await aRunnerRow(database.db, pool) }
})
after(() => database.close())

const RUNNERS = ['ours', 'other'] as const
type Runner = (typeof RUNNERS)[number]

interface Case {
  run: RunState
  /** Runners that name it, and under which epoch; the same one twice, too. */
  held: { runner: Runner; epochOff: number }[]
}

/** In a group, on average. */
const MEAN = 100
const held = fc.record({ runner: fc.constantFrom('ours', 'ours', 'other'), epochOff: fc.constantFrom(0, 0, 0, -1, 1) })
const cases: fc.Arbitrary<Case[]> = fc.noBias(
  fc.array(fc.record({ run: anyRun, held: fc.array(held, { maxLength: 3 }) }), {
    minLength: 1,
    maxLength: 2 * MEAN - 1,
    size: 'max',
  }),
)

/** The runner whose heartbeat renews it, if there is one. An offer is renewed, too, and stays one. */
function renewer({ run, held }: Case): Runner | undefined {
  const holder = run.runner ?? 'ours'
  const isNamed = held.some(({ runner, epochOff }) => runner === holder && epochOff === 0)
  return isNamed && run.acked !== 'no placement' ? holder : undefined
}

interface Lease {
  isAccepted: boolean
  isRenewed: boolean
  /** From its last renewal on. */
  ms: number | null
}

async function leases(ids: readonly RunId[]): Promise<Map<RunId, Lease>> {
  const rows = await database.db<(Lease & { runId: RunId })[]>`
    select run_id, accepted_at is not null as is_accepted, renewed_at is not null as is_renewed,
           (extract(epoch from lease_expires_at - renewed_at) * 1000)::float8 as ms
    from placements
    where run_id = any(${[...ids]})`
  return new Map(rows.map(({ runId, ...lease }) => [runId, lease]))
}

/** Longer than any lease has here before. */
const LEASE_MS = { ours: 4_000_000, other: 5_000_000 }

test('a heartbeat renews what its runner has of what it names', async (t) => {
  const groups = amount({ test: 20, storm: 105_000 / MEAN })
  await playCases(t, { group: cases, groups, size: ({ length }) => length }, async (group) => {
    const ids = await writeRuns(
      database.db,
      owner,
      group.map(({ run }) => run),
    )
    const named = (by: Runner) =>
      group.flatMap(({ run, held }, i) =>
        held.filter(({ runner }) => runner === by).map(({ epochOff }): Placement => [ids[i]!, run.epoch + epochOff]),
      )
    const before = await leases(ids)
    const rows = await beat(
      database.db,
      RUNNERS.map((by) => ({ runnerId: owner[by], holds: named(by), leaseMs: LEASE_MS[by] })),
    )
    assert.deepEqual(new Set(rows.map(({ runnerId }) => runnerId)), new Set(RUNNERS.map((by) => owner[by])))
    const answers = new Map(rows.map((row) => [row.runId, row]))
    const now = await leases(ids)
    for (const [i, one] of group.entries()) {
      const [id, by] = [ids[i]!, renewer(one)]
      const answer = answers.get(id)
      if (!by) {
        assert.equal(answer, undefined, `case ${i} is nobody's`)
        assert.deepEqual(now.get(id), before.get(id))
        continue
      }
      assert.ok(answer && answer.runId !== null, `case ${i} is renewed`)
      const { runnerId, epoch, status, timedOut } = answer
      assert.deepEqual(
        [runnerId, epoch, status, timedOut],
        [owner[by], one.run.epoch, one.run.status, one.run.timedOut],
      )
      const { isAccepted, isRenewed, ms } = now.get(id)!
      assert.deepEqual([isAccepted, isRenewed], [one.run.isAccepted, true])
      assert.ok(ms !== null && ms >= LEASE_MS[by], `case ${i} has a lease of ${ms} ms`)
    }
  })
})
