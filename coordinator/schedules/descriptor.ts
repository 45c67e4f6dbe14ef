import { newId, type OrgId, type WorkflowId } from '@windlass/shared/ids.ts'
import { DEFAULT_CATCH_UP_WINDOW_MS } from '@windlass/shared/model/late-rules.ts'
import type { Descriptor } from '@windlass/shared/model/descriptor.ts'
import type { Tx } from '../db/client.ts'
import type { Content, ScheduleRow } from './row.ts'
import { isDeepStrictEqual } from 'node:util'
import { contentOf, NEW, save, saveStates } from './saved.ts'
import { armed } from './state.ts'
import * as store from './store.ts'
import { insertGaps } from './store-settle.ts'

type Wanted = Descriptor['schedules'][number]
type Which = { orgId: OrgId; workflowId: WorkflowId }

/**
 * The schedules of a workflow become those of the descriptor that is current from now on, in the transaction in which
 * it does. What is there under the same identity stays itself: its id, its anchor, whether it is paused, and its past.
 * A tick that is due already fires, whatever becomes of its schedule.
 */
export async function takeOver(tx: Tx, which: Which, schedules: readonly Wanted[]): Promise<void> {
  const rows = await store.lockOf(tx, which, 'descriptor')
  if (rows.length === 0 && schedules.length === 0) return
  const now = rows[0]?.now ?? (await store.clock(tx))
  const wanted = new Map(identified(schedules))
  for (const row of rows) {
    const schedule = wanted.get(row.identity!)
    if (schedule) await keep(tx, row, schedule)
    else await end(tx, row)
    wanted.delete(row.identity!)
  }
  for (const [identity, schedule] of wanted) await begin(tx, { ...which, identity }, schedule, now)
}

/** By what a schedule is the same over deploys: its name, else all that says when, and its place among equals. */
function* identified(schedules: readonly Wanted[]): Generator<[string, Wanted]> {
  const counts = new Map<string, number>()
  for (const schedule of schedules) {
    const { name, when, environment } = schedule
    const { anchorAt: _, ...ticks } = { anchorAt: null, ...when }
    const alike = name === null ? `when ${JSON.stringify([ticks, environment])}` : `name ${name}`
    const ordinal = (counts.get(alike) ?? 0) + 1
    counts.set(alike, ordinal)
    yield [`${alike} ${ordinal}`, schedule]
  }
}

/** What descriptors lack that were deployed by an earlier release. */
const ADDED_LATER = {
  jitterMs: 0,
  catchUp: 'last',
  catchUpWindowMs: DEFAULT_CATCH_UP_WINDOW_MS,
  overlap: 'allow',
} as const

function contentAsked({ when, input, ...rest }: Wanted, anchorAt: number): Content {
  const { name, environment, enabled, jitterMs, catchUp, catchUpWindowMs, overlap } = { ...ADDED_LATER, ...rest }
  const rules = { jitterMs, catchUp, catchUpWindowMs, overlap, enabled }
  const about = { name, environment, environmentId: null, input: JSON.stringify(input ?? null), ...rules }
  const none = { cron: null, timezone: null, rateMs: null, at: null, anchorAt }
  if (when.kind === 'cron') return { ...about, ...none, kind: 'cron', cron: when.cron, timezone: when.timezone }
  if (when.kind === 'at') return { ...about, ...none, kind: 'at', at: when.at }
  return { ...about, ...none, kind: 'rate', rateMs: when.rateMs, anchorAt: when.anchorAt ?? anchorAt }
}

async function keep(tx: Tx, row: ScheduleRow, schedule: Wanted): Promise<void> {
  const asked = contentAsked(schedule, row.anchorAt)
  const content = row.isSetByHand ? { ...asked, enabled: row.enabled } : asked
  const isBack = row.endedBecause === 'not-in-descriptor'
  if (!isBack && isDeepStrictEqual(content, contentOf(row))) return
  // What ticked while it was in no descriptor was nobody's.
  const back = isBack ? { endedAt: null, endedBecause: null, settledAt: Math.max(row.settledAt, row.now) } : {}
  await save(tx, row, { ...row, ...content, ...back })
}

async function end(tx: Tx, row: ScheduleRow): Promise<void> {
  if (row.endedBecause === 'not-in-descriptor') return
  await save(tx, row, { ...row, endedAt: row.now, endedBecause: 'not-in-descriptor' })
}

async function begin(tx: Tx, which: Which & { identity: string }, schedule: Wanted, now: number): Promise<void> {
  const content = contentAsked(schedule, now)
  const id = newId('sch')
  const rests = content.enabled ? {} : { restsSince: now, restsBecause: 'paused' as const }
  const made = { id, ...NEW, ...which, source: 'descriptor' as const, settledAt: now, ...rests, ...content }
  const { row, gaps } = armed(made, { was: null, now })
  await store.insert(tx, { ...row, pausedBy: null, createdBy: null })
  await insertGaps(tx, gaps)
}

/** What becomes of all schedules of a workflow that is deleted, or restored, in the same transaction. */
export async function restSchedules(tx: Tx, which: Which, isWorkflowDeleted: boolean): Promise<void> {
  const rows = await store.lockOf(tx, which)
  await saveStates(
    tx,
    rows.map((was) => ({ was, is: { ...was, isWorkflowDeleted } })),
  )
}

/** With the workflow, which is gone for good. */
export async function removeSchedules(tx: Tx, which: Which): Promise<void> {
  await store.removeOf(tx, which)
}
