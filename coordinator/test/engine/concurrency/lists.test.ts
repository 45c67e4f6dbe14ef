// Runs that count in several groups at once: what the database does is what a model in a few lines says.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import * as fc from 'fast-check'
import { newId, type RunId, type WorkflowId } from '@windlass/shared/ids.ts'
import type { Database } from '../../../db/client.ts'
import { type Changes, type Counted, rebalance } from '../../../engine/commit/admit.ts'
import { keyBy } from '../../../engine/commit/group.ts'
import { compareStages, readGroups, stageOf, writeGroups } from '../../../engine/rules/groups.ts'
import { testDatabase } from '../../_kit/database.ts'
import { playCases } from '../../_kit/play-cases.ts'
import { aPoolRow, queuedRows } from '../../_kit/queue.ts'

let database: Database
let pool: Awaited<ReturnType<typeof aPoolRow>>

before(async () => {
  database = await testDatabase()
  pool = await aPoolRow(database.db)
})
after(() => database.close())

/** What a version limits: by two fields, and all its runs. Null: it does not. */
interface Limits {
  a: number | null
  b: number | null
  all: number | null
}

/** Runs enter with one value in each field; `leave` and `resume` choose among those that are there. */
type Act =
  | { is: 'enter'; runs: { version: number; a: number; b: number; priority: number }[] }
  | { is: 'leave'; which: number[] }
  | { is: 'resume'; which: number[] }

interface Case {
  versions: Limits[]
  acts: Act[]
}

const limit = fc.option(fc.integer({ min: 1, max: 3 }))
const which = fc.array(fc.nat(1000), { minLength: 1, maxLength: 4 })
const run = fc.record({
  version: fc.nat(2),
  a: fc.nat(2),
  b: fc.nat(1),
  priority: fc.constantFrom(0, 0, 0, 5),
})
const act: fc.Arbitrary<Act> = fc.oneof(
  fc.record({ is: fc.constant('enter' as const), runs: fc.array(run, { minLength: 1, maxLength: 5 }) }),
  fc.record({ is: fc.constant('leave' as const), which }),
  fc.record({ is: fc.constant('resume' as const), which }),
)
const cases: fc.Arbitrary<Case> = fc.record({
  versions: fc.array(fc.record({ a: limit, b: limit, all: limit }), { minLength: 3, maxLength: 3 }),
  acts: fc.array(act, { minLength: 5, maxLength: 40, size: 'max' }),
})

interface Modelled extends Counted {
  arrival: number
  priority: number
  groups: { key: string; limit: number }[]
  /** Groups that it has entered. */
  entered: number
  /** It has left, and may come again as one that goes on. */
  isAway: boolean
}

const isIn = (run: Modelled) => !run.isAway && run.entered === run.groups.length
const waits = (run: Modelled) => !run.isAway && run.entered < run.groups.length

/** As long as the first of any line may enter, it does; the lines of earlier stages move first. */
function settle(runs: readonly Modelled[]): void {
  for (;;) {
    const heads = new Map<string, Modelled>()
    for (const run of runs.filter(waits).toSorted((a, b) => b.priority - a.priority || a.arrival - b.arrival)) {
      const { key } = run.groups[run.entered]!
      if (!heads.has(key)) heads.set(key, run)
    }
    const taken = (key: string) =>
      runs.filter((run) => !run.isAway && run.groups.slice(0, run.entered).some((group) => group.key === key)).length
    const next = [...heads]
      .toSorted(([a], [b]) => compareStages(stageOf(a), stageOf(b)))
      .find(([key, run]) => taken(key) < run.groups[run.entered]!.limit)
    if (!next) return
    next[1].entered++
  }
}

/** Where each run is according to the database: in the queue, or the group that it waits for; and its slots. */
async function found(runs: readonly Modelled[]) {
  const ids = runs.map(({ id }) => id)
  const rows = await database.db<{ id: RunId; waitsFor: string | null; isQueued: boolean; slots: string[] | null }[]>`
    select r.id, w.group_key as waits_for, q.run_id is not null as is_queued,
           (select array_agg(group_key order by group_key) from concurrency_slots s where s.run_id = r.id) as slots
    from runs r
    left join concurrency_waiters w on w.run_id = r.id
    left join run_queue q on q.run_id = r.id
    where r.id = any(${ids})
    order by r.id`
  return rows.map((row) => ({ ...row }))
}

function expected(runs: readonly Modelled[], resumed: ReadonlySet<RunId>) {
  return runs
    .map((run) => {
      const slots = run.isAway ? [] : run.groups.slice(0, run.entered).map(({ key }) => key)
      const waitsFor = waits(run) ? run.groups[run.entered]!.key : null
      // Whoever goes on is executing already.
      const isQueued = isIn(run) && !resumed.has(run.id)
      return { id: run.id, waitsFor, isQueued, slots: slots.length > 0 ? slots.toSorted() : null }
    })
    .toSorted((a, b) => (a.id < b.id ? -1 : 1))
}

const ORG = newId('org')

async function groupsOfCase(workflowId: WorkflowId, limits: Limits, value: { a: number; b: number }) {
  const input = () => value
  const groups = [
    ...(limits.a === null ? [] : [{ limit: limits.a, key: await keyBy({ orgId: ORG, workflowId }, 'input.a', input) }]),
    ...(limits.all === null ? [] : [{ limit: limits.all, key: workflowId as string }]),
    ...(limits.b === null ? [] : [{ limit: limits.b, key: await keyBy({ orgId: ORG, workflowId }, 'input.b', input) }]),
  ]
  return groups.length === 0 ? null : writeGroups(groups)
}

async function rebalanced(changes: Changes) {
  await database.db.begin((tx) => rebalance(tx, changes))
}

interface Scene {
  workflowId: WorkflowId
  versions: readonly Limits[]
  runs: Modelled[]
  resumed: Set<RunId>
}

async function enter({ workflowId, versions, runs }: Scene, asked: Extract<Act, { is: 'enter' }>['runs']) {
  const texts = await Promise.all(asked.map((one) => groupsOfCase(workflowId, versions[one.version]!, one)))
  const limited = asked
    .map(({ priority }, i) => ({ priority, concurrencyGroup: texts[i]! }))
    .filter(({ concurrencyGroup }) => concurrencyGroup !== null)
  const ids = await queuedRows(database.db, pool, limited)
  const before = runs.length
  const entering = limited.map(({ priority, concurrencyGroup }, i): Modelled => {
    const groups = readGroups(concurrencyGroup).map(({ key, limit }) => ({ key, limit: limit! }))
    return { id: ids[i]!, arrival: before + i, priority, concurrencyGroup, groups, entered: 0, isAway: false }
  })
  runs.push(...entering)
  return { entering }
}

function leave({ runs }: Scene, which: readonly number[]) {
  const leaving = chosen(which, (one) => !one.isAway, runs)
  for (const one of leaving) Object.assign(one, { isAway: true, entered: 0 })
  return { leaving }
}

function resume({ runs, resumed }: Scene, which: readonly number[]) {
  const counting = chosen(which, (one) => one.isAway, runs)
  for (const one of counting) Object.assign(one, { isAway: false, entered: one.groups.length })
  for (const one of counting) resumed.add(one.id)
  return { counting }
}

function chosen(numbers: readonly number[], fits: (run: Modelled) => boolean, runs: readonly Modelled[]): Modelled[] {
  const from = runs.filter(fits)
  return from.length === 0 ? [] : [...new Set(numbers.map((n) => from[n % from.length]!))]
}

async function play({ versions, acts }: Case): Promise<void> {
  const scene: Scene = { workflowId: newId('wf'), versions, runs: [], resumed: new Set() }
  for (const act of acts) {
    if (act.is === 'enter') await rebalanced(await enter(scene, act.runs))
    else await rebalanced(act.is === 'leave' ? leave(scene, act.which) : resume(scene, act.which))
    settle(scene.runs)
    assert.deepEqual(await found(scene.runs), expected(scene.runs, scene.resumed))
  }
  await rebalanced({ leaving: scene.runs })
}

test('a run enters one group after the other, as the model says, and the queue when it has entered all', async (t) => {
  await playCases(t, { group: cases, groups: 60, size: ({ acts }) => acts.length }, play)
  const [left] = await database.db<[{ slots: number; waiters: number }]>`
    select (select count(*)::int from concurrency_slots) as slots,
           (select count(*)::int from concurrency_waiters) as waiters`
  assert.deepEqual({ ...left }, { slots: 0, waiters: 0 })
})

test('groups by a field come before that of all runs, whatever the order in the descriptor', async () => {
  const workflowId = newId('wf')
  const text = await groupsOfCase(workflowId, { a: 1, b: 2, all: 3 }, { a: 1, b: 1 })
  assert.deepEqual(
    readGroups(text!).map(({ key, limit }) => [stageOf(key), limit]),
    [
      ['a', 1],
      ['b', 2],
      ['', 3],
    ],
  )
})
