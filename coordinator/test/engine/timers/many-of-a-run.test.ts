// One run may have 25,000 timers: what is found of it is looked up by its whole key, and not among all of these.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import type { RunId } from '@windlass/shared/ids.ts'
import type { Db, Tx } from '../../../db/client.ts'
import * as held from '../../../engine/store/held-timers.ts'
import * as journal from '../../../engine/store/journal.ts'
import { type DueTimer, putOff, take } from '../../../engine/store/timers.ts'
import { anAgent } from '../../_kit/agent.ts'
import { aCoordinatorOfItsOwn, type TestCoordinator } from '../../_kit/coordinator.ts'
import { aCrew, aPool } from '../../_kit/crew.ts'
import { rowsRead } from '../../_kit/rows-read.ts'
import { silence } from '../../_kit/silence.ts'
import { accepted, aParkedRun, call, question, sleepFor } from '../../_kit/waiting.ts'
import { aWorkflow } from '../../_kit/workflow.ts'

const MANY = 1000
const SOME = 10
const DOUBT = { silentMs: 13_500, forMs: 1000 }

let c: TestCoordinator
let run: RunId

before(async () => {
  c = await aCoordinatorOfItsOwn()
  await aWorkflow(c, { slug: 'any', descriptor: { timeout: { wall: '1h' } } })
  const agent = await anAgent(c)
  const link = await agent.connect()
  const { pool, workflow } = await aPool(c)
  const other = await aCrew(c, pool)
  const parked = await aParkedRun({ c, agent, link }, { workflow: 'any' }, call(workflow), question(), sleepFor())
  run = parked.run
  await accepted(other)
  await silence(c, other.agent)
  await silence(c, agent)
})
after(() => c.stop())

/** Rows of timers that it reads, beside so many of one run that are due. Nothing of it stays. */
async function readsOf(act: (db: Db) => PromiseLike<unknown>): Promise<{ found: number; read: number }> {
  const rollback = new Error('nothing of it stays')
  let rows: { found: number; read: number } | undefined
  const acting = c.db.begin(async (tx) => {
    await tx`update inputs set due_at = now() - interval '1 minute' where run_id = ${run}`
    await tx`
      update timers set due_at = now() - interval '1 minute' where run_id = ${run} and kind = 'wall-timeout'`
    await tx`
      insert into timers (run_id, org_id, kind, n, due_at)
      select ${run}, ${c.orgId}, 'sleep', 100 + n, now() - n * interval '1 millisecond'
      from generate_series(1, ${MANY}::int) n`
    const here = { begin: (list: (sql: Tx) => unknown) => list(tx) } as never
    rows = await rowsRead(here, 'timers', async (db) => ((await act(db)) ?? []) as unknown[])
    throw rollback
  })
  await assert.rejects(acting, rollback)
  return rows!
}

const ofRun = (): DueTimer[] => Array.from({ length: SOME }, (_, i) => ({ runId: run, kind: 'sleep', n: 101 + i }))

for (const [what, act] of Object.entries<(db: Db) => PromiseLike<unknown>>({
  'takes them': (db) => take(db as unknown as Tx, ofRun()),
  'puts them off': (db) => putOff(db, ofRun(), 1000),
  'completes their entries': (db) =>
    journal.complete(db as unknown as Tx, [
      { id: run, journal: { completed: [{ n: 3, state: 'done', result: 'null' }] } as never },
    ]),
  'puts off the time of the whole run': (db) => held.holdWalls(db, [run], DOUBT),
}))
  test(`who ${what} does not pass over the other timers of a run`, async () => {
    const { read } = await readsOf(act)
    assert.ok(read > 0 && read <= 2 * SOME, `${read} rows were read`)
  })

for (const [what, act] of Object.entries<(db: Db) => PromiseLike<readonly unknown[]>>({
  'sleeps that wait for a child in doubt': (db) => held.holdWakes(db, [run], DOUBT),
  'questions of an outage': (db) => held.holdQuestions(db, [run], { gapAtMs: Date.now(), forMs: 90_000 }),
}))
  test(`${what} are put off together, and each is looked at a few times`, async () => {
    const { found, read } = await readsOf(act)
    assert.ok(found >= MANY, `${found} of ${MANY}`)
    assert.ok(read <= 4 * MANY, `${read} rows were read`)
  })
