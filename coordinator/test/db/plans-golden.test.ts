import assert from 'node:assert/strict'
import { readFileSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { after, before, test } from 'node:test'
import { newId } from '@windlass/shared/ids.ts'
import { type Database, type Db, openDatabase, type Tx } from '../../db/client.ts'
import * as events from '../../events/store.ts'
import * as inputs from '../../engine/store/questions.ts'
import { carryFailures, takeBackFailure } from '../../engine/store/failures.ts'
import * as journal from '../../engine/store/journal.ts'
import { accept, overdue, recheck, unlocked } from '../../engine/store/placements.ts'
import { pulse } from '../../engine/store/pulse.ts'
import { claimPairs, claimPlain } from '../../engine/store/claim.ts'
import { beat, renew, renewHeld } from '../../engine/store/leases.ts'
import { findAll } from '../../runs/store.ts'
import * as runs from '../../engine/store/runs.ts'
import { append } from '../../engine/store/append.ts'
import { list } from '../../runs/store-list.ts'
import { insertQueued } from '../../engine/store/new-runs.ts'
import * as held from '../../engine/store/held-timers.ts'
import * as timers from '../../engine/store/timers.ts'
import { termsOf } from '../../workflows/store.ts'
import { dropInvariants, testDatabase } from '../_kit/database.ts'
import { createExplained, explainSessions } from '../_kit/explained.ts'
import { createPlanShapes, type PlanShapes } from '../_kit/plan-shapes.ts'

// The golden list makes every change of how the hot statements find their rows visible in review. To accept one:
// npx node coordinator/test/db/plans-golden.test.ts --update
const GOLDEN = join(import.meta.dirname, 'plans.golden.txt')

const orgId = newId('org')
const poolId = newId('pool')
const runId = newId('run')
const runnerId = newId('rnr')
const OFFER_MS = 10_000

type Act = (db: Db) => Promise<unknown>
const inTransaction =
  (act: (tx: Tx) => PromiseLike<unknown>[]): Act =>
  (db) =>
    db.begin((tx) => Promise.all(act(tx)))

/**
 * Nothing is there that they could find, so no plan depends on what another has written, nor on statistics. What is
 * given them does not matter either: plans are general.
 */
const ACTS: Readonly<Record<string, Act>> = {
  trigger: (db) => insertQueued(db, []),
  'claim, any run for any runner': (db) =>
    claimPlain(db, poolId, { candidates: [{ runnerId, slots: 1, share: 1 }], most: 1 }, OFFER_MS),
  'claim, chosen pairs': (db) => claimPairs(db, poolId, [{ runId, runnerId, slots: 1 }], OFFER_MS),
  accept: (db) => accept(db, [{ runId, runnerId, epoch: 1, leaseMs: 1000 }]),
  beat: async (db) => {
    const beats = [{ runnerId, holds: [[runId, 1]] as const, leaseMs: 1000 }]
    await beat(db, beats)
    await db.begin((tx) => renew(tx, beats))
    await renewHeld(db, beats)
  },
  'append events and entries': (db) =>
    append(db, [{ runId, runnerId, epoch: 1, first: 1, last: 1, events: [], entries: [], chars: 0 }]),
  pulse: (db) =>
    pulse(db, {
      own: undefined,
      limitMs: 15_000,
      toleranceMs: 5000,
      offerMs: OFFER_MS,
      floorMs: 90_000,
      amnestyMs: 300_000,
      isLate: true,
    }),
  'leases and offers that are over': async (db) => {
    await overdue(db, OFFER_MS, 15_000)
    await db.begin((tx) => recheck(tx, [runId], { offerMs: OFFER_MS, limitMs: 15_000 }))
  },
  'overdue runs that nobody holds': (db) => unlocked(db, [runId]),
  'move and end runs': inTransaction((tx) => [
    runs.lockHeld(tx, { runnerIds: [runnerId], ids: [runId], ending: [runId] }),
    runs.lockWithParents(tx, [runId], [runId]),
    runs.update(tx, []),
    events.insert(tx, []),
    runs.release(tx, []),
    runs.noteUnsuccessful(tx, []),
    timers.drop(tx, [runId]),
    runs.enterAsResume(tx, []),
  ]),
  'write a journal': inTransaction((tx) => [
    journal.insert(tx, []),
    journal.deliver(tx, []),
    journal.complete(tx, []),
    carryFailures(tx, []),
    takeBackFailure(tx, []),
    ...journal.close(tx, [runId]),
  ]),
  'answer an input': inTransaction((tx) => [inputs.answer(tx, { id: newId('inp'), text: 'true', by: 'somebody' })]),
  'due timers': async (db) => {
    await timers.upcoming(db, 100)
    await db.begin((tx) => Promise.all([runs.lockWithParents(tx, [runId], [runId], true), timers.take(tx, [])]))
  },
  'timers that are put off': async (db) => {
    await held.holdWalls(db, [runId], { silentMs: 13_500, forMs: 1000 })
    await held.holdWakes(db, [runId], { silentMs: 13_500, forMs: 1000 })
    await held.holdQueues(db, [runId], { gapAtMs: 0, forMs: 1000 })
    await held.holdQuestions(db, [runId], { gapAtMs: 0, forMs: 1000 })
  },
  'get run': (db) => findAll(db, [{ orgId, id: runId }]),
  // Without a filter: what a person sees first, and the list that agents and scripts ask for again and again.
  'first page of the runs': (db) => list(db, { orgId, limit: 50 }),
  'entries of runs whose time is over': inTransaction((tx) => [events.lastTimes(tx, [])]),
  'terms of versions': async (db) => void (await termsOf(db, [])),
}

let database: Database
/** Explains itself. */
let observed: Database
const explained = createExplained()

before(async () => {
  database = await testDatabase()
  await dropInvariants(database.db)
  await explainSessions(database.db)
  observed = openDatabase({ url: database.url, max: 1, log: explained.log })
  // The first statement of a connection asks for the types of the database.
  await observed.db`select 1`
})
after(async () => {
  await observed?.close()
  await database?.close()
})

async function shapes(db: Db, made: PlanShapes, act: Act): Promise<string> {
  await endStatement(db)
  explained.take()
  await act(db)
  await endStatement(db)
  const plans = explained.take()
  assert.ok(plans.length > 0)
  return plans.map(({ plan }) => made.shapeOf(plan)).join('\n\n')
}

/** Within a transaction a statement ends, and is explained, when the next one begins. This one has no plan itself. */
const endStatement = (db: Db) => db`show timezone`

async function goldenText(db: Db): Promise<string> {
  const plans = await createPlanShapes(database.db)
  let text = '# What each hot statement does to find its rows, on empty tables. Tables are numbered as they appear.\n'
  for (const [name, act] of Object.entries(ACTS)) text += `\n${name}\n${await shapes(db, plans, act)}\n`
  return text
}

test('plans are those of the golden list; to accept others run `npx node <this file> --update`', async () => {
  const text = await goldenText(observed.db)
  if (process.argv.includes('--update')) writeFileSync(GOLDEN, text)
  assert.equal(text, readFileSync(GOLDEN, 'utf8'))
})

/** How the act finds its rows before and after a change of the tables, which is undone. */
async function around(change: (tx: Tx) => PromiseLike<unknown>, act: Act): Promise<{ was: string; is: string }> {
  const undo = new Error('undo')
  const seen = { was: '', is: '' }
  const undone = observed.db.begin(async (tx) => {
    // It asks for no more than a transaction is.
    const db = tx as unknown as Db
    seen.was = await shapes(db, await createPlanShapes(db), act)
    await change(tx)
    seen.is = await shapes(db, await createPlanShapes(db), act)
    throw undo
  })
  await assert.rejects(undone, undo)
  return seen
}

const LOSSES: readonly [what: string, change: (tx: Tx) => PromiseLike<unknown>, act: Act][] = [
  ['key', (tx) => tx`alter table runs drop constraint runs_pkey`, ACTS['get run']!],
  ['index of a list', (tx) => tx`drop index runs_by_org`, ACTS['first page of the runs']!],
  ['partial index', (tx) => tx`drop index journal_waits`, ACTS['get run']!],
]
for (const [what, change, act] of LOSSES) {
  test(`a lost ${what} changes the text`, async () => {
    const { was, is } = await around(change, act)
    assert.notEqual(is, was)
  })
}

test('a condition that no longer leads to the row changes the text', async () => {
  const made = await createPlanShapes(observed.db)
  const ways: Act[] = [
    (db) => db`select status from runs where id = ${runId}`,
    (db) => db`select status from runs where id || '' = ${runId}`,
    (db) => db`select status from runs where org_id = ${orgId} and id || '' = ${runId}`,
    (db) => db`select r.status from runs r join orgs o on o.id = r.org_id where r.id = ${runId}`,
  ]
  const texts: string[] = []
  for (const way of ways) texts.push(await shapes(observed.db, made, way))
  assert.equal(new Set(texts).size, ways.length)
})

test('other names leave it as it is', async () => {
  const { was, is } = await around((tx) => tx`alter index runs_pkey rename to another_name`, ACTS['get run']!)
  assert.equal(is, was)
  const rows = await database.db<{ name: string }[]>`
    select relname as name from pg_class where relnamespace = 'public'::regnamespace`
  const names = new Set(readFileSync(GOLDEN, 'utf8').match(/^ .*$/gm)!.join(' ').match(/\w+/g))
  const named = rows.filter(({ name }) => names.has(name))
  assert.deepEqual(named, [])
})
