// What becomes of an acceptance depends on its placement and its run, and not on who accepts at the same moment.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import * as fc from 'fast-check'
import type { RunId } from '@windlass/shared/ids.ts'
import { isSuspended } from '@windlass/shared/model/run.ts'
import { amount } from '@windlass/shared/test/_kit/rounds.ts'
import type { Database } from '../../../db/client.ts'
import { type Acceptance, type Accepted, commitAcceptances } from '../../../engine/commit/acceptances.ts'
import { noteAccepted } from '../../../runners/intake.ts'
import { dropInvariants, testDatabase } from '../../_kit/database.ts'
import { playCases } from '../../_kit/play-cases.ts'
import { aPoolRow, aRunnerRow } from '../../_kit/queue.ts'
import { anyRun, type Known, openKnown, type Owner, type RunState, writeRuns } from '../../_kit/random-runs.ts'

let database: Database
let owner: Owner
let known: (ids: readonly RunId[]) => Promise<Known[]>

before(async () => {
  database = await testDatabase()
  const { db } = database
  await dropInvariants(db)
  const pool = await aPoolRow(db)
  owner = { ...pool, ours: await aRunnerRow(db, pool), other: await aRunnerRow(db, pool) }
  known = await openKnown(db)
})
after(() => database.close())

/** What a runner says of a run; several say it at once. `order`: among all that are taken together. */
interface Said {
  runner: 'ours' | 'other'
  epochOff: number
  leaseMs: number
  order: number
}

interface Case {
  run: RunState
  said: Said[]
}

const said: fc.Arbitrary<Said> = fc.record({
  runner: fc.constantFrom('ours', 'ours', 'other'),
  epochOff: fc.constantFrom(0, 0, 0, -1, 1),
  leaseMs: fc.constantFrom(1000, 60_000, 3_600_000),
  order: fc.nat(1000),
})
/** In a group, on average. */
const MEAN = 100
const cases = (most: number) =>
  fc.noBias(
    fc.array(fc.record({ run: anyRun, said: fc.array(said, { minLength: 1, maxLength: 3 }) }), {
      minLength: 1,
      maxLength: most,
      size: 'max',
    }),
  )

/** Takes an offer that is still this one; taken twice it is taken. */
function outcome(run: RunState, { runner, epochOff }: Said): Accepted {
  const holder = run.runner ?? 'ours'
  if (run.acked === 'no placement' || runner !== holder || epochOff !== 0) return 'late'
  if (run.status === 'cancelling') return 'cancelling'
  return isSuspended(run.status) ? 'resuming' : 'ours'
}

interface Played {
  ids: RunId[]
  answers: { run: RunState; one: Said; is: Accepted }[]
}

async function accept(group: readonly Case[]): Promise<Played> {
  const { db } = database
  const states = group.map(({ run }) => run)
  const ids = await writeRuns(db, owner, states)
  const all = group
    .flatMap(({ run, said }, i) => said.map((one) => ({ run, one, id: ids[i]! })))
    .sort((a, b) => a.one.order - b.one.order)
  const acceptances = all.map(({ run, one, id }): Acceptance => {
    const { orgId } = owner
    return { runId: id, runnerId: owner[one.runner], orgId, epoch: run.epoch + one.epochOff, leaseMs: one.leaseMs }
  })
  const answers = await commitAcceptances(db, acceptances, noteAccepted)
  return { ids, answers: all.map(({ run, one }, i) => ({ run, one, is: answers[i]! })) }
}

/** What a lease has here at first, in milliseconds from its acceptance on. */
const LEASE_MS = 3_600_000

/** Milliseconds of each lease from its last renewal on. */
async function leases(ids: readonly RunId[]): Promise<Map<string, number>> {
  const rows = await database.db<{ runId: string; ms: number }[]>`
    select run_id, (extract(epoch from lease_expires_at - renewed_at) * 1000)::float8 as ms
    from placements
    where run_id = any(${[...ids]}) and renewed_at is not null`
  return new Map(rows.map(({ runId, ms }) => [runId, ms]))
}

const played = (most: number, groups: number) => ({
  group: cases(most),
  groups,
  size: (group: readonly Case[]) => group.reduce((sum, { said }) => sum + said.length, 0),
})

test('an acceptance takes the offer that it names, and changes no other', async (t) => {
  await playCases(t, played(MEAN, amount({ test: 16, storm: 800 })), async (group) => {
    const { ids, answers } = await accept(group)
    for (const { run, one, is } of answers)
      assert.equal(is, outcome(run, one), `${JSON.stringify(one)} of ${JSON.stringify(run)}`)
    const [now, lengths] = [await known(ids), await leases(ids)]
    for (const [i, { run, said }] of group.entries()) {
      const given = said.filter((one) => outcome(run, one) !== 'late').map(({ leaseMs }) => leaseMs)
      const [placement] = now[i]!['placements'] ?? []
      const isTaken = given.length > 0 || run.isAccepted
      if (placement) assert.deepEqual([placement['acceptedAt'], placement['renewedAt']], [isTaken, isTaken])
      const lease = lengths.get(ids[i]!)
      if (given.length === 0) assert.equal(lease, placement && isTaken ? LEASE_MS : undefined)
      else assert.ok(lease! >= Math.min(...given), `a lease of ${lease} ms was given for ${given.join(' or ')}`)
    }
  })
})

test('a runner that takes an offer in time has missed none any more; one that is late has', async (t) => {
  await playCases(t, played(6, amount({ test: 40, storm: 2500 })), async (group) => {
    const { db } = database
    const runners = [owner.ours, owner.other]
    await db`update runner_intake set unaccepted = 2 where runner_id = any(${runners})`
    const { answers } = await accept(group)
    const rows = await db<{ runnerId: string; unaccepted: number }[]>`
      select runner_id, unaccepted from runner_intake where runner_id = any(${runners})`
    for (const runner of ['ours', 'other'] as const) {
      const isInTime = answers.some(({ run, one }) => one.runner === runner && outcome(run, one) !== 'late')
      const { unaccepted } = rows.find(({ runnerId }) => runnerId === owner[runner])!
      assert.equal(unaccepted, isInTime ? 0 : 2, `of the runner "${runner}"`)
    }
  })
})
