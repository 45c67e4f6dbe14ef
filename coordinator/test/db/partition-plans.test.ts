import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import { firstIdAt, type RunId } from '@windlass/shared/ids.ts'
import { createLog } from '@windlass/shared/log.ts'
import { makePartitions } from '../../db/partitions.ts'
import { carryFailures, takeBackFailure } from '../../engine/store/failures.ts'
import * as journal from '../../engine/store/journal.ts'
import * as orphans from '../../engine/store/orphans.ts'
import { enterAsResume } from '../../engine/store/runs.ts'
import * as strays from '../../engine/store/strays.ts'
import type { Finding } from '../../engine/store/orphans.ts'
import type { TestCoordinator } from '../_kit/coordinator.ts'
import { exercise } from '../_kit/exercise.ts'
import { anExplainedOrg } from '../_kit/explained-org.ts'
import { type Executed, type Explained, stepsOf } from '../_kit/explained.ts'
import type { Tenant } from '../_kit/tenants.ts'

// What the coordinator sends is explained as it happens, over five years of partitions: what counts is which of them it
// reads, not which its plan names. A new statement is covered as soon as an org that is used broadly sends it.

const MONTHS = 60
const now = new Date()
/** The first millisecond of a month, so many months ago. */
const ago = (months: number) => Date.UTC(now.getUTCFullYear(), now.getUTCMonth() - months, 1)
/** As partitions are called. */
const nameOf = (at: number) => new Date(at).toISOString().slice(0, 7).replace('-', '_')
const isPartition = /^(run_events|journal)_(\d{4}_\d{2})$/

let c: TestCoordinator
let ours: Tenant
let explained: Explained

before(async () => {
  ;({ c, ours, explained } = await anExplainedOrg(prepare))
})
after(() => c.stop())

async function prepare(db: TestCoordinator['db']): Promise<void> {
  const log = createLog({ part: 'test' }, 'error')
  const times = Array.from({ length: MONTHS }, (_, i) => ago(i))
  await makePartitions(db, log, times)
}

/** Asserts that nothing but the partitions of these months was read, and that something of them was. */
function assertReads(executed: readonly Executed[], months: readonly string[], act = ''): void {
  let reads = 0
  const surplus = new Set<string>()
  for (const { text, plan } of executed) {
    const scanned = stepsOf(plan).filter((step) => step['Actual Loops'] > 0 && /Scan/.test(step['Node Type']))
    for (const step of scanned) {
      const [, , month] = isPartition.exec(step['Relation Name'] ?? '') ?? []
      if (month !== undefined && months.includes(month)) reads++
      else if (month !== undefined) surplus.add(`${step['Relation Name']}: ${text.replace(/\s+/g, ' ').slice(0, 200)}`)
    }
  }
  assert.deepEqual([...surplus], [])
  assert.ok(reads > 0, `${act} reads nothing`)
}

test('whatever an org does with runs of this month reads no other partition', async () => {
  explained.take()
  await exercise(ours)
  const executed = explained.take()
  assertReads(executed, [nameOf(now.getTime()), nameOf(Date.now())])
})

test('statements for several runs read the partitions of these runs', async () => {
  const [one, two, three] = [0, 7, 30].map((months) => firstIdAt('run', ago(months) + 1000))
  const ids = [one!, two!, three!]
  // The coordinator takes away timers that are due, and then nothing is left to be read.
  const untilLong = new Date(now.getTime() + 86_400_000)
  await c.db`
    insert into runs (id, org_id, workflow_id, version_id, pool_id, status, trigger_kind, input)
    select made.id, r.org_id, r.workflow_id, r.version_id, r.pool_id, 'sleeping', 'api', 'null'
    from unnest(${ids}::text[]) as made (id)
    cross join (select * from runs limit 1) r`
  await c.db`
    insert into journal (run_id, n, attempt, position, parent, kind, name, hash, occurrence, args, site, state, due_at)
    select id, 1, 1, 1, '', 'sleep', 'sleep', '', 1, '[]', '', 'open', ${untilLong}
    from unnest(${ids}::text[]) as id`
  await c.db`
    insert into inputs (id, org_id, run_id, n, prompt)
    select 'inp_' || id, ${c.orgId}, id, 1, 'Sure?' from unnest(${ids}::text[]) as id`
  for (const [name, act] of Object.entries(actsFor(ids))) {
    explained.take()
    await act()
    // Within a transaction a statement is explained when the next one begins.
    await c.deps.db`show timezone`
    const executed = explained.take()
    assert.ok(executed.length > 0, name)
    assertReads(
      executed,
      [0, 7, 30].map((months) => nameOf(ago(months))),
      name,
    )
  }
})

function actsFor(ids: readonly RunId[]): Record<string, () => PromiseLike<unknown>> {
  const { db } = c.deps
  const findings = ids.map((runId) => ({ runId, n: 1 }) as Finding)
  const changed = (of: object) => ids.map((id) => ({ id, journal: of }) as never)
  const moving = ids.map((id) => ({ id, poolId: c.poolId, priority: 0, attempt: 1, needs: '' }) as never)
  const inTx = (act: (tx: never) => PromiseLike<unknown>) => () =>
    db.begin(async (tx) => {
      await act(tx as never)
      await tx`show timezone`
    })
  return {
    adopt: inTx((tx) => journal.adopt(tx, changed({ adopted: [{ n: 1, position: 1, attempt: 2 }] }))),
    drift: inTx((tx) => journal.drift(tx, changed({ drifted: [{ n: 1, args: '' }] }))),
    deliver: inTx((tx) => journal.deliver(tx, changed({ delivered: [{ delivery: [1, 1, 1, 0], attempt: 1 }] }))),
    complete: inTx((tx) => journal.complete(tx, changed({ completed: [{ n: 1, state: 'done', result: 'null' }] }))),
    'enter as resume': inTx((tx) => enterAsResume(tx, moving)),
    'set timers': inTx((tx) => strays.setTimers(tx, findings)),
    'ended children': inTx((tx) => strays.endedChildren(tx, findings)),
    'records of': () =>
      journal.recordsOf(
        db,
        ids.map((runId) => ({ runId, forgottenEntries: 0 })),
        1e6,
      ),
    unowned: () => orphans.unowned(db, { ids }),
    'stray timers': inTx((tx) => orphans.strayTimers(tx, ids)),
    'stray questions': () => orphans.strays(db, 'stray_question', { ids }),
    'take back a failure': inTx((tx) => takeBackFailure(tx, changed({ thrown: { attempt: 1, last: null } }))),
    'carry failures': inTx((tx) => carryFailures(tx, changed({ thrown: { attempt: 1, first: 1, last: 1 } }))),
    close: inTx((tx) => Promise.all(journal.close(tx, ids))),
    forget: inTx((tx) => journal.forget(tx, changed({ forgotten: { after: 0 } }))),
  }
}
