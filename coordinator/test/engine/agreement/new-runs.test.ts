// What is created for a run follows from what was asked for, however often the statement is sent.
import assert from 'node:assert/strict'
import { after, before, test } from 'node:test'
import * as fc from 'fast-check'
import { newId, type OrgId, type PoolId, type RunId } from '@windlass/shared/ids.ts'
import { TriggerKind } from '@windlass/shared/model/run.ts'
import { amount } from '@windlass/shared/test/_kit/rounds.ts'
import type { Database } from '../../../db/client.ts'
import { commitTriggers } from '../../../engine/commit/trigger.ts'
import { insertQueued, type NewRun } from '../../../engine/store/new-runs.ts'
import { testDatabase } from '../../_kit/database.ts'
import { playCases } from '../../_kit/play-cases.ts'
import { aPoolRow } from '../../_kit/queue.ts'
import { type Known, oddText, openKnown } from '../../_kit/random-runs.ts'

let database: Database
let pools: { orgId: OrgId; poolId: PoolId }[]
let known: (ids: readonly RunId[]) => Promise<Known[]>

before(async () => {
  database = await testDatabase()
  pools = [await aPoolRow(database.db), await aPoolRow(database.db)]
  known = await openKnown(database.db)
})
after(() => database.close())

type Asked = Omit<NewRun, 'id' | 'orgId' | 'poolId' | 'workflowId' | 'versionId' | 'parentRunId' | 'retryOf'>

/** A run to be created. */
interface Case {
  asked: Asked
  pool: 0 | 1
  isRetry: boolean
  isChild: boolean
  /** It is among those that are created first. */
  isFirst: boolean
}

const lengthMs = fc.constantFrom(null, 1, 1000, 86_400_000, 10 * 365 * 86_400_000)
const text = oddText.map((odd) => odd.toWellFormed())
const orNull = (what: fc.Arbitrary<string>) => fc.oneof(fc.constant(null), what)
const asked: fc.Arbitrary<Asked> = fc.record({
  triggerKind: fc.constantFrom(...TriggerKind.options),
  triggerId: orNull(text),
  triggerActor: orNull(text),
  tick: fc.oneof(
    fc.constant(null),
    fc.record({
      how: fc.constantFrom('due', 'caught-up', 'manual'),
      at: fc.integer({ min: 0, max: 4_102_444_800_000 }),
      lateMs: fc.constantFrom(0, 1, 604_800_000),
    }),
  ),
  environment: orNull(text),
  tags: fc.array(text, { maxLength: 4 }),
  priority: fc.integer({ min: -100, max: 100 }),
  parentEntry: fc.integer({ min: 1, max: 25_000 }),
  rootRunId: fc.constantFrom(null, 'run_root' as RunId),
  depth: fc.nat(64),
  delayMs: fc.constantFrom(0, 0, 0, 1, 1000, 86_400_000),
  queueTimeoutMs: lengthMs,
  wallTimeoutMs: lengthMs,
  concurrencyGroup: fc.constantFrom(null, null, 'one', 'a,"b'),
  throttle: fc.constant(null),
  debounce: fc.constant(null),
  needs: fc.constantFrom('', '', '2|gpu', '1|"a",b'),
  input: fc.oneof(
    text.map((odd) => JSON.stringify(odd)),
    fc.constant('{"a":"\\u0000"}'),
  ),
})
/** In a group, on average. */
const MEAN = 100
const cases = fc.noBias(
  fc.array(
    fc.record({
      asked,
      pool: fc.constantFrom(0 as const, 1 as const),
      isRetry: fc.boolean(),
      isChild: fc.boolean(),
      isFirst: fc.boolean(),
    }),
    { minLength: 1, maxLength: 2 * MEAN - 1, size: 'max' },
  ),
)

const SPAN = 1_000_000
let ticks = 0

/** There is one run of a tick; a smaller example that is looked for must not have two. */
function tickOf({ tick }: Asked): Asked['tick'] {
  return tick && { ...tick, at: tick.at - (tick.at % SPAN) + (ticks++ % SPAN) }
}

function newRun({ asked, pool, isRetry, isChild }: Case): NewRun {
  return {
    ...asked,
    tick: tickOf(asked),
    ...pools[pool]!,
    id: newId('run'),
    workflowId: newId('wf'),
    versionId: newId('ver'),
    retryOf: isRetry ? newId('run') : null,
    parentRunId: isChild ? newId('run') : null,
    parentEntry: isChild ? asked.parentEntry : null,
  }
}

/** What there is of a run once it is created; of a time, whether it is set. */
function expected(run: NewRun): Known {
  const { id: _, tags, tick, delayMs, queueTimeoutMs, wallTimeoutMs, throttle: _t, debounce: _d, ...facts } = run
  const ofTick = {
    tick: tick?.how ?? null,
    tickAt: tick !== null,
    tickLate: tick === null ? null : String(tick.lateMs),
  }
  const { orgId, poolId, priority, needs } = facts
  const entersAtOnce = delayMs === 0 && facts.concurrencyGroup === null
  const timers = [
    ...(delayMs > 0 ? ['enqueue'] : []),
    ...(queueTimeoutMs === null ? [] : ['queue-timeout']),
    ...(wallTimeoutMs === null ? [] : ['wall-timeout']),
  ].map((kind) => ({ kind, n: 0, dueAt: true, orgId, holds: null }))
  const queued = { cursor: 1, at: '', channel: 'lifecycle', type: 'run.queued', data: { trigger: run.triggerKind } }
  return {
    runs: [{ ...NEW, ...facts, ...ofTick, tags }],
    run_events: [queued],
    ...(entersAtOnce && { run_queue: [{ poolId, isResume: false, priority, enteredAt: true, needs }] }),
    ...(timers.length > 0 && { timers }),
  }
}

const UNSET = [
  'runnerId',
  'output',
  'error',
  'cancelReason',
  'place',
  'blocked',
  'isolation',
  'variableSetId',
  'deletedBy',
] as const
const AHEAD = [
  'claimedAt',
  'startedAt',
  'finishedAt',
  'cancelRequestedAt',
  'suspendedAt',
  'timedOutAt',
  'deletedAt',
] as const
const COUNTED = ['crashes', 'fences', 'thrown', 'replays', 'cutReplays'] as const
const NONE = ['epoch', 'seq', 'entries', 'forgottenEntries', ...COUNTED] as const
const UNSPENT = ['computeMs', 'tokensInput', 'tokensOutput', 'tokensCached', 'tokensReasoning', 'costMicros'] as const
const all = <V>(names: readonly string[], value: V) => Object.fromEntries(names.map((name) => [name, value]))
const NEW = {
  status: 'queued',
  attempt: 1,
  cursor: 1,
  createdAt: true,
  queuedAt: true,
  ...all(UNSET, null),
  ...all(AHEAD, false),
  ...all(NONE, 0),
  lostAttempts: [],
  // bigint
  ...all([...UNSPENT, 'journalChars', 'activeMs'], '0'),
}

/** The time of an event is that of the machine, and its data are JSON. */
const readable = (one: Known): Known => ({
  ...one,
  run_events: (one['run_events'] ?? []).map((event) => ({ ...event, at: '', data: JSON.parse(String(event['data'])) })),
})

/** How much later than its creation a run is due for something, in milliseconds; and when it enters the queue. */
async function delays(ids: readonly RunId[]): Promise<string[]> {
  const rows = await database.db<{ said: string }[]>`
    select r.id || ' ' || d.kind || ' ' || round(extract(epoch from d.at - r.created_at) * 1000) as said
    from runs r
    cross join lateral (
      select kind, due_at as at from timers where run_id = r.id
      union all
      select 'queued', r.queued_at
    ) d
    where r.id = any(${[...ids]})`
  return rows.map(({ said }) => said).sort()
}

const delaysOf = ({ id, delayMs, queueTimeoutMs, wallTimeoutMs }: NewRun) => [
  `${id} queued ${delayMs}`,
  ...(delayMs > 0 ? [`${id} enqueue ${delayMs}`] : []),
  ...(queueTimeoutMs === null ? [] : [`${id} queue-timeout ${delayMs + queueTimeoutMs}`]),
  ...(wallTimeoutMs === null ? [] : [`${id} wall-timeout ${wallTimeoutMs}`]),
]

async function tagged(ids: readonly RunId[]): Promise<string[]> {
  const rows = await database.db<{ runId: string; tag: string; orgId: string }[]>`
    select t.run_id, t.tag, t.org_id
    from run_tags t
    join runs r on r.id = t.run_id and r.org_id = t.org_id
    where r.id = any(${[...ids]})`
  return rows.map(({ runId, tag, orgId }) => JSON.stringify([runId, orgId, tag])).sort()
}

const tagsOf = ({ id, orgId, tags }: NewRun) => [...new Set(tags)].map((tag) => JSON.stringify([id, orgId, tag]))

test('runs are created once, as they were asked for, however often they are sent', async (t) => {
  const { db } = database
  const groups = amount({ test: 20, storm: 105_000 / MEAN })
  await playCases(t, { group: cases, groups, size: ({ length }) => length }, async (group) => {
    const runs = group.map(newRun)
    const ids = runs.map((run) => run.id)
    // A child is created under the lock of its parent, and the run of a tick under that of its schedule: never by two
    // statements at once. These would meet at an index for which `on conflict` is not.
    const isFirst = ({ isFirst, isChild, asked }: Case) => isFirst && !isChild && asked.tick === null
    const first = runs.filter((_, i) => isFirst(group[i]!))
    // Sent again before an answer has come.
    const [one, other] = await Promise.all([insertQueued(db, first), insertQueued(db, first)])
    assert.deepEqual([...one.keys(), ...other.keys()].sort(), first.map((run) => run.id).sort())
    const rest = await insertQueued(db, runs)
    assert.deepEqual([...rest.keys()].sort(), ids.filter((_, i) => !isFirst(group[i]!)).sort())
    const created = await known(ids)
    for (const [i, run] of runs.entries()) assert.deepEqual(readable(created[i]!), expected(run), `case ${i}`)
    assert.deepEqual(await delays(ids), runs.flatMap(delaysOf).sort())
    assert.deepEqual(await tagged(ids), runs.flatMap(tagsOf).sort())
    const free = runs.filter((run) => run.concurrencyGroup === null)
    const times = new Map([...one, ...other, ...rest])
    assert.deepEqual(
      await commitTriggers(db, free),
      free.map(({ id }) => times.get(id)),
    )
    assert.deepEqual(await known(ids), created)
  })
})
