/** Runs in any state, as rows: what the product writes, and what a mistake of it might. */
import * as fc from 'fast-check'
import { newId, type OrgId, type PoolId, type RunId, type RunnerId } from '@windlass/shared/ids.ts'
import { isFinal, RUN_STATUSES, type RunStatus, SUSPENDED } from '@windlass/shared/model/run.ts'
import type { Db } from '../../db/client.ts'
import { MOST_CHARS } from '../../engine/rules/journal.ts'
import { MOST_ENTRIES } from '../../engine/rules/parse-op.ts'
import type { ProcessState } from '../../engine/rules/run.ts'

export interface RunState {
  status: RunStatus
  place: ProcessState | null
  isBlocked: boolean
  timedOut: boolean
  attempt: number
  epoch: number
  seq: number
  cursor: number
  /** Number of the last entry in its journal. */
  entries: number
  journalChars: number
  /** The runner that has it: that of the test, another one, none. */
  runner: 'ours' | 'other' | null
  /** Its placement, and when something was last taken from its agent. */
  acked: 'never' | 'lately' | 'long ago' | 'no placement'
  /** The offer has become a lease. */
  isAccepted: boolean
  journal: JournalState[]
}

interface JournalState {
  /** How many there are between it and the last entry. */
  back: number
  /** How many attempts ago it was called. */
  ago: number
  position: number
  kind: 'step' | 'sleep' | 'input' | 'child'
  state: 'open' | 'done' | 'failed' | 'closed'
  delivered: number | null
  isIdle: boolean
  hasDrifted: boolean
}

/** Texts that are easily spoilt on their way into a column, or out of an array. */
const ODD = [
  '',
  'NULL',
  '{}',
  '{"a",b}',
  '\\',
  '\\u0000',
  '"\\"',
  "'; --",
  'a\nb\r\tc',
  '🦊é\u2028',
  '\u0001',
  '\uffff',
  '%_',
  ' ',
]
export const oddText = fc.tuple(fc.constantFrom(...ODD), fc.constantFrom(...ODD)).map(([a, b]) => a + b)

const journalState: fc.Arbitrary<JournalState> = fc.record({
  back: fc.nat(4),
  ago: fc.nat(2),
  position: fc.integer({ min: 1, max: 9 }),
  kind: fc.constantFrom('step', 'step', 'step', 'sleep', 'input', 'child'),
  state: fc.constantFrom('open', 'open', 'done', 'failed', 'closed'),
  delivered: fc.constantFrom(null, null, 1),
  isIdle: fc.boolean(),
  hasDrifted: fc.boolean(),
})

const small = { min: 1, max: 3 }
const counts = {
  attempt: fc.integer(small),
  epoch: fc.integer(small),
  seq: fc.constantFrom(0, 0, 1, 2, 7, 1_000_000),
  cursor: fc.constantFrom(0, 1, 4, 2_000_000_000),
  entries: fc.constantFrom(0, 0, 1, 2, 4, 4, 100),
  journalChars: fc.constantFrom(0, 0, 500, 1_000_000),
  journal: fc.array(journalState, { maxLength: 4 }),
  isAccepted: fc.constantFrom(true, true, false),
}
const acked = fc.constantFrom('never' as const, 'lately' as const, 'long ago' as const)

/** Executed by the runner of the test: what agents speak of as a rule. */
export const executed: fc.Arbitrary<RunState> = fc.record({
  ...counts,
  status: fc.constant<RunStatus>('running'),
  place: fc.constant<ProcessState>('hot'),
  isBlocked: fc.constant(false),
  timedOut: fc.constant(false),
  runner: fc.constant('ours' as const),
  acked,
})

/** Near the end of what a journal may hold. */
const nearlyFull = fc.record({
  entries: fc.constantFrom(4, MOST_ENTRIES - 2, MOST_ENTRIES - 1, MOST_ENTRIES),
  journalChars: fc.integer({ min: 0, max: 30 }).map((room) => MOST_CHARS - room),
})

/** Anything that its columns take, whether or not a run ever gets there. */
const anything: fc.Arbitrary<RunState> = fc.record({
  ...counts,
  status: fc.constantFrom(...RUN_STATUSES),
  place: fc.constantFrom(null, 'hot', 'replaying', 'parked'),
  isBlocked: fc.boolean(),
  timedOut: fc.boolean(),
  runner: fc.constantFrom('ours' as const, 'ours' as const, 'other' as const, null),
  acked: fc.oneof(acked, fc.constant('no placement' as const)),
})

/** Where a run is that has a process, and one that has none. */
const PROCESS_STATES: [RunStatus, ProcessState | null][] = [
  ['pending', 'hot'],
  ...SUSPENDED.flatMap((status): [RunStatus, ProcessState | null][] => [
    [status, 'replaying'],
    [status, 'parked'],
    [status, null],
  ]),
  ...(['hot', 'replaying', 'parked'] as const).map((place): [RunStatus, ProcessState] => ['cancelling', place]),
  ...(['queued', 'completed', 'failed', 'cancelled'] as const).map((status): [RunStatus, null] => [status, null]),
]
const elsewhere = fc.tuple(executed, fc.constantFrom(...PROCESS_STATES)).map(([run, [status, place]]): RunState => {
  return { ...run, status, place, acked: place === null ? 'no placement' : run.acked }
})

/** Where a run may be given away: in the queue for the first time, or to continue. */
export const atRest: fc.Arbitrary<RunState> = fc
  .tuple(executed, fc.constantFrom<RunStatus>('queued', 'queued', 'queued', ...SUSPENDED))
  .map(([run, status]) => ({ ...run, status, place: null, acked: 'no placement' }))

/** Executed, but for one thing. */
const nearlyExecuted = fc
  .tuple(
    executed,
    fc.constantFrom<Partial<RunState>>(
      { place: null },
      { place: null, acked: 'no placement' },
      { place: 'replaying' },
      { place: 'parked' },
      { acked: 'no placement' },
      { isBlocked: true },
      { timedOut: true },
      { runner: 'other' },
      { runner: null },
      ...RUN_STATUSES.map((status) => ({ status })),
    ),
  )
  .map(([run, odd]) => ({ ...run, ...odd }))

export const anyRun: fc.Arbitrary<RunState> = fc.oneof(
  { arbitrary: executed, weight: 5 },
  { arbitrary: fc.tuple(executed, nearlyFull).map(([run, full]) => ({ ...run, ...full })), weight: 1 },
  { arbitrary: nearlyExecuted, weight: 4 },
  { arbitrary: elsewhere, weight: 2 },
  { arbitrary: anything, weight: 2 },
)

/** The org, workflow and runners that the runs belong to. */
export interface Owner {
  orgId: OrgId
  poolId: PoolId
  ours: RunnerId
  other: RunnerId
  /** What they execute, where that is looked up. */
  version?: { workflowId: string; versionId: string }
}

const NOWHERE = { workflowId: 'wf_random', versionId: 'ver_random' }

/** Writes a run for each of these states; answers their ids. */
export async function writeRuns(db: Db, owner: Owner, states: readonly RunState[]): Promise<RunId[]> {
  const runs = states.map((state) => ({ ...state, id: newId('run') }))
  const { workflowId, versionId } = owner.version ?? NOWHERE
  await db`
    insert into runs (id, org_id, workflow_id, version_id, pool_id, status, attempt, epoch, cursor, seq, runner_id,
                      trigger_kind, input, place, entries, journal_chars, blocked, timed_out_at, finished_at, error)
    select id, ${owner.orgId}, ${workflowId}, ${versionId}, ${owner.poolId}, status, attempt, epoch, cursor, seq,
           runner_id, 'api', 'null', place, entries, journal_chars, blocked, case when timed_out then now() end,
           case when is_final then now() end, case when status = 'failed' then '{}' end
    from json_to_recordset(${JSON.stringify(runs.map((run) => runRow(run, owner)))}::text::json)
      as t (id text, status text, attempt int, epoch int, cursor int, seq int, runner_id text, place text, entries int,
            journal_chars bigint, blocked text, timed_out boolean, is_final boolean)`
  await db`
    insert into placements (run_id, runner_id, epoch, accepted_at, renewed_at, lease_expires_at, acked_at)
    select run_id, runner_id, epoch, case when accepted then now() end, case when accepted then now() end,
           now() + interval '1 hour', now() - acked_s * interval '1 second'
    from json_to_recordset(${JSON.stringify(runs.flatMap((run) => placementRow(run, owner)))}::text::json)
      as t (run_id text, runner_id text, epoch int, accepted boolean, acked_s float8)`
  await db`
    insert into journal (run_id, n, attempt, position, parent, kind, name, hash, occurrence, args, site, state, result,
                         completed_at, completion, delivered, idle, has_drifted)
    select run_id, n, attempt, position, '', kind, '', 'h', 1, '[]', '', state,
           case when state <> 'open' then 'null' end,
           case when state <> 'open' then now() end, case when state = 'done' and kind <> 'step' then n end,
           delivered, is_idle, has_drifted
    from json_to_recordset(${JSON.stringify(runs.flatMap(journalRows))}::text::json)
      as t (run_id text, n int, attempt int, position int, kind text, state text, delivered int, is_idle boolean,
            has_drifted boolean)`
  return runs.map((run) => run.id)
}

const runnerOf = ({ runner }: RunState, owner: Owner) => (runner === null ? null : owner[runner])

function runRow(run: RunState & { id: RunId }, owner: Owner): object {
  const { id, status, attempt, epoch, cursor, seq, place, entries } = run
  return {
    id,
    status,
    attempt,
    epoch,
    cursor,
    seq,
    place,
    entries,
    runner_id: runnerOf(run, owner),
    journal_chars: run.journalChars,
    blocked: run.isBlocked ? '{"code":"REPLAY_MISMATCH"}' : null,
    timed_out: run.timedOut,
    is_final: isFinal(status),
  }
}

const SECONDS_AGO = { never: null, lately: 0, 'long ago': 3600 }

function placementRow(run: RunState & { id: RunId }, owner: Owner): object[] {
  if (run.acked === 'no placement') return []
  const runnerId = runnerOf(run, owner) ?? owner.ours
  return [
    {
      run_id: run.id,
      runner_id: runnerId,
      epoch: run.epoch,
      accepted: run.isAccepted,
      acked_s: SECONDS_AGO[run.acked],
    },
  ]
}

/** One row a number: the first state that names it. */
function journalRows(run: RunState & { id: RunId }): object[] {
  const rows = new Map<number, object>()
  for (const { back, ago, position, kind, state, delivered, isIdle, hasDrifted } of run.journal) {
    const n = run.entries - back
    const attempt = Math.max(1, run.attempt - ago)
    const more = { delivered: state === 'done' ? delivered : null, is_idle: isIdle, has_drifted: hasDrifted }
    if (n > 0 && !rows.has(n)) rows.set(n, { run_id: run.id, n, attempt, position, kind, state, ...more })
  }
  return [...rows.values()]
}

/** Where rows of runs are, and what they are read by and sorted by. What identities count is the test's own. */
const TABLES = [
  { name: 'runs', key: 'id', order: 'id', without: [] },
  { name: 'placements', key: 'run_id', order: 'run_id', without: [] },
  { name: 'run_queue', key: 'run_id', order: 'run_id', without: ['position'] },
  { name: 'run_events', key: 'run_id', order: 'cursor', without: [] },
  { name: 'journal', key: 'run_id', order: 'n', without: [] },
  { name: 'timers', key: 'run_id', order: 'kind', without: [] },
  { name: 'run_losses', key: 'run_id', order: 'epoch', without: [] },
] as const

type Rows = Record<string, unknown>[]
/** By table. */
export type Known = Record<string, Rows>

/**
 * Reads all that is known of runs: every column, also one that is new, but of times only whether they are set. Ids of
 * the runs themselves are left out.
 */
export async function openKnown(db: Db): Promise<(ids: readonly RunId[]) => Promise<Known[]>> {
  const readers = await Promise.all(
    TABLES.map(async ({ name, key, order, without }) => {
      const columns = await db<{ column: string; isTime: boolean }[]>`
        select column_name as column, data_type = 'timestamp with time zone' as is_time
        from information_schema.columns
        where table_schema = 'public' and table_name = ${name} and column_name <> all(${[...without, key]}::text[])
        order by ordinal_position`
      const list = () =>
        columns.map(({ column, isTime }) =>
          isTime ? db`, ${db(column)} is not null as ${db(column)}` : db`, ${db(column)}`,
        )
      const read = (ids: readonly RunId[]) => db<({ it: RunId } & Record<string, unknown>)[]>`
        select ${db(key)} as it ${list()}
        from ${db(name)}
        where ${db(key)} = any(${[...ids]}::text[])
        order by ${db(key)}, ${db(order)}`
      return { name, read }
    }),
  )
  return async (ids) => {
    const known = new Map(ids.map((id): [RunId, Known] => [id, {}]))
    const tables = await Promise.all(readers.map(async ({ name, read }) => ({ name, rows: await read(ids) })))
    for (const { name, rows } of tables) for (const { it, ...row } of rows) (known.get(it)![name] ??= []).push(row)
    return [...known.values()]
  }
}
