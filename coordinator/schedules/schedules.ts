import { isDeepStrictEqual } from 'node:util'
import type { z } from 'zod'
import { Fault } from '@windlass/shared/errors.ts'
import { newId, type OrgId, type ScheduleId, type WorkflowId } from '@windlass/shared/ids.ts'
import type { Schedule } from '@windlass/shared/model/schedule.ts'
import type { ops } from '@windlass/shared/ops/index.ts'
import type { Acting, Caller, LongCall } from '../actor.ts'
import { record } from '../audit/record.ts'
import type { Db } from '../db/client.ts'
import { countFitting } from '../db/page-bytes.ts'
import type { Timers } from '../engine/commit/clock.ts'
import type { PrepareDeps } from '../engine/commit/trigger.ts'
import { claimOf, once, type TakeKey } from '../idempotency/once.ts'
import { environmentId } from '../environments/level.ts'
import { mapInSlices } from '../slices.ts'
import { inputAsked, whenAsked } from './content.ts'
import { assertInputFits, workflowOf } from './judged.ts'
import { presentSchedule } from './present.ts'
import type { Content, ScheduleRow } from './row.ts'
import { contentOf, NEW, save } from './saved.ts'
import { armed } from './state.ts'
import * as store from './store.ts'
import { cleanDeleted, insertGaps } from './store-settle.ts'

type Deps = PrepareDeps & { db: Db; scheduleTimers: Timers }
type CreateAsk = z.output<(typeof ops.schedules.create)['input']>
type UpdateAsk = z.output<(typeof ops.schedules.update)['input']>

/** Of an org, made over the API and not ended. Those of descriptors are a hundred per workflow at most. */
const MOST_SCHEDULES = 20_000

export async function getSchedule(deps: { db: Db }, caller: Caller, id: ScheduleId): Promise<Schedule> {
  return presentSchedule(await needSchedule(deps, caller, id))
}

export async function needSchedule(deps: { db: Db }, caller: Caller, id: ScheduleId): Promise<ScheduleRow> {
  const row = await store.find(deps.db, caller.orgId, id)
  if (!row) throw new Fault('NOT_FOUND', { schedule: id })
  return row
}

/** So many of the page as fit into one answer, and the one behind them. */
export async function listSchedules({ db }: { db: Db }, ask: store.ListAsk) {
  const fitting = countFitting(await store.inputSizes(db, ask))
  const rows = await store.list(db, { ...ask, limit: fitting + 1 })
  return { schedules: await mapInSlices(rows, presentSchedule, ask.orgId), fitting }
}

/** Those that a key or session has made over the API and that have not ended. */
export function countSchedulesOf(deps: { db: Db }, orgId: OrgId, by: string): Promise<number> {
  return store.countOfApi(deps.db, orgId, by)
}

/** What a caller is answered: a new schedule, or the first one of the key. */
interface Created {
  schedule: Schedule
  isNew: boolean
}

/** The same request under the same key makes one schedule: its name is what people read, and may be there twice. */
export async function createSchedule(
  deps: Deps,
  call: LongCall,
  ask: CreateAsk,
  key: string | undefined,
): Promise<Created> {
  const { orgId } = call.caller
  const workflow = await workflowOf(deps, orgId, ask.workflow)
  const request = { kind: 'schedules.create', ...requestOf(ask) }
  const claim = key === undefined ? undefined : await claimOf({ orgId, scope: workflow.id, key, request })
  return once<ScheduleId, Created>(deps, claim, {
    first: async (id) => ({ schedule: await answer(deps, call.caller, id), isNew: false }),
    make: async (take) => ({ schedule: await createNow(deps, call, { ...ask, workflow, take }), isNew: true }),
  })
}

/** Everything that makes the request what it is: its workflow is what the key counts for. */
function requestOf({ org: _, workflow: __, idempotencyKey: ___, environment, ...content }: CreateAsk) {
  // Null and left out are one request.
  return { ...content, environment: environment ?? undefined }
}

type NowAsk = Omit<CreateAsk, 'workflow'> & { workflow: { id: WorkflowId; slug: string }; take: TakeKey | undefined }

async function createNow(deps: Deps, call: LongCall, ask: NowAsk): Promise<Schedule> {
  const { caller } = call
  const { orgId } = caller
  const { id: workflowId, slug } = ask.workflow
  const now = await store.clock(deps.db)
  const { name = null, jitterMs, catchUp, catchUpWindowMs, overlap, enabled } = ask
  const content: Content = {
    name,
    ...whenAsked(ask, undefined, now),
    ...(await environmentAsked(deps, caller, ask.environment)),
    input: inputAsked(ask.input),
    jitterMs,
    catchUp,
    catchUpWindowMs,
    overlap,
    enabled,
  }
  await assertInputFits(deps, call, { workflowId, ...content })
  // It may be deleted while the input is judged.
  await workflowOf(deps, orgId, workflowId)
  const id = newId('sch')
  const rests = enabled ? {} : { restsSince: now, restsBecause: 'paused' as const }
  const made = { id, ...NEW, orgId, source: 'api' as const, settledAt: now, ...rests, ...content }
  const { row, gaps } = armed(made, { was: null, now })
  await deps.db.begin(async (tx) => {
    await ask.take?.(tx, id)
    await store.lockOrg(tx, orgId)
    if ((await store.countOfApi(tx, orgId)) >= MOST_SCHEDULES) throw tooMany()
    const by = { pausedBy: enabled ? null : caller.id, createdBy: caller.id }
    await store.insert(tx, { ...row, workflowId, identity: null, ...by })
    await insertGaps(tx, gaps)
    const target = { type: 'schedule', id, name }
    await record(tx, caller, { action: 'schedules.create', target, after: { workflow: slug, ...factsOf(content) } })
  })
  return answer(deps, caller, id)
}

function tooMany(): Fault {
  return new Fault(
    'CONFLICT',
    { limit: MOST_SCHEDULES },
    `The org has ${MOST_SCHEDULES} schedules, and may have no more over the API. Delete some.`,
  )
}

/** What the audit log says of one; its input may hold what not everybody is to read. */
function factsOf({ input: _, environmentId: __, ...content }: Content) {
  return Object.fromEntries(Object.entries(content).filter(([, value]) => value !== null))
}

async function environmentAsked(deps: Deps, { orgId }: Caller, ref: string | null | undefined) {
  if (ref === undefined || ref === null) return { environment: null, environmentId: null }
  const environment = await deps.environments.need(orgId, ref)
  return { environment, environmentId: (await environmentId(deps.db, orgId, environment)) ?? null }
}

/** Edits, pauses, lets go on. The next tick is found from now on; one that is due already fires. */
export async function updateSchedule(deps: Deps, call: LongCall, ask: UpdateAsk): Promise<Schedule> {
  const { caller } = call
  const { schedule: id, ...asked } = ask
  const before = await needSchedule(deps, caller, id)
  assertMayChange(before, asked)
  const environment = asked.environment === undefined ? {} : await environmentAsked(deps, caller, asked.environment)
  const input = asked.input === undefined ? before.input : inputAsked(asked.input)
  if (asked.input !== undefined || asked.environment !== undefined)
    await assertInputFits(deps, call, { ...before, ...environment, input })
  await deps.db.begin(async (tx) => {
    const was = await store.lock(tx, caller.orgId, id)
    if (!was) throw new Fault('NOT_FOUND', { schedule: id })
    const found = { ...environment, ...(asked.input !== undefined && { input }) }
    // An `at` may pass while the input is judged: it is accepted by the time at which it was asked for.
    const content = changedContent(was, asked, { found, now: before.now })
    if (isDeepStrictEqual(contentOf(was), content)) return
    const { enabled } = content
    const isToggled = asked.enabled !== undefined && enabled !== was.enabled
    const by = isToggled ? { isSetByHand: true, pausedBy: enabled ? null : caller.id } : {}
    await save(tx, was, { ...was, ...content, ...by })
    const target = { type: 'schedule', id, name: content.name }
    const facts = { before: factsOf(contentOf(was)), after: factsOf(content) }
    await record(tx, caller, { action: 'schedules.update', target, ...facts })
  })
  return answer(deps, caller, id)
}

function assertMayChange(row: ScheduleRow, asked: Omit<UpdateAsk, 'schedule'>): void {
  if (row.source === 'api') return
  const other = Object.entries(asked).find(([name, value]) => name !== 'enabled' && value !== undefined)
  if (other) throw ofDescriptor(row, other[0])
}

function ofDescriptor({ id, workflowSlug }: ScheduleRow, path?: string): Fault {
  return new Fault(
    'SCHEDULE_OF_DESCRIPTOR',
    { schedule: id, workflow: workflowSlug, ...(path !== undefined && { path }) },
    `The schedule stands in the descriptor of \`${workflowSlug}\`: change it there. Only \`enabled\` changes here.`,
  )
}

function changedContent(
  was: ScheduleRow,
  asked: Omit<UpdateAsk, 'schedule'>,
  { found, now }: { found: Partial<Content>; now: number },
): Content {
  const { name, jitterMs, catchUp, catchUpWindowMs, overlap, enabled } = asked
  const given = { name, jitterMs, catchUp, catchUpWindowMs, overlap, enabled, ...found }
  const changes = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined))
  return { ...contentOf(was), ...whenAsked(asked, was, now), ...changes }
}

export async function deleteSchedule(deps: { db: Db }, caller: Acting, id: ScheduleId): Promise<void> {
  await deps.db.begin(async (tx) => {
    const row = await store.lock(tx, caller.orgId, id)
    if (!row) throw new Fault('NOT_FOUND', { schedule: id })
    if (row.source === 'descriptor') throw ofDescriptor(row)
    await store.remove(tx, caller.orgId, id)
    const target = { type: 'schedule', id, name: row.name }
    await record(tx, caller, { action: 'schedules.delete', target, before: factsOf(contentOf(row)) })
  })
}

/** Those that were deleted are kept for a while, for whoever asks what became of them. */
export async function cleanSchedules({ db }: { db: Db }): Promise<void> {
  const AT_ONCE = 1000
  while ((await cleanDeleted(db, AT_ONCE)) === AT_ONCE);
}

/** As it is now; and whoever fires looks when it is due. */
async function answer(deps: Deps, caller: Caller, id: ScheduleId): Promise<Schedule> {
  const row = await needSchedule(deps, caller, id)
  if (row.dueAt !== null) deps.scheduleTimers.expect(row.dueAt - row.now)
  return presentSchedule(row)
}
