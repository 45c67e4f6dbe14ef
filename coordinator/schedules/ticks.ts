import type { ScheduleId } from '@windlass/shared/ids.ts'
import type { ScheduleGap, ScheduleWhy } from '@windlass/shared/model/schedule.ts'
import type { Caller, LongCall } from '../actor.ts'
import type { Db } from '../db/client.ts'
import type { PrepareDeps } from '../engine/commit/trigger.ts'
import { isLongAgo } from '../stay.ts'
import { askOf, type Refusal, startedBy } from './judged.ts'
import { presentGap } from './present.ts'
import type { GapRow, ScheduleRow } from './row.ts'
import { MOST_HELD_MS } from './rules/held.ts'
import { needSchedule } from './schedules.ts'
import { skippedMeanwhile } from './state.ts'
import { unfinishedOf } from './store-unfinished.ts'
import { listGaps } from './store-settle.ts'

export interface TicksAsk {
  id: ScheduleId
  before: string | undefined
  limit: number
}

/** Sorts behind the ids of all rows: a page that ends here goes on with the newest of them. */
const BEHIND_ALL = '999999999999999999'

/** What has started no run, the newest first, with what the schedule skips while it rests. `id` is of the row. */
export async function listTicks(
  deps: { db: Db },
  caller: Caller,
  { id, before, limit }: TicksAsk,
): Promise<{ id: string; gap: ScheduleGap }[]> {
  const row = await needSchedule(deps, caller, id)
  const ask = { orgId: caller.orgId, scheduleId: id, before, limit }
  const rows = (await listGaps(deps.db, ask)).map((gap: GapRow) => ({ id: gap.id, gap: presentGap(gap) }))
  const resting = before === undefined ? skippedMeanwhile(row, row.now) : null
  return resting ? [{ id: BEHIND_ALL, gap: presentGap(resting) }, ...rows] : rows
}

/** Why it starts no runs, or when it starts the next: what the next tick would meet is tried. */
export async function whyOfSchedule(
  deps: PrepareDeps & { db: Db },
  call: LongCall,
  id: ScheduleId,
): Promise<ScheduleWhy> {
  const { caller } = call
  const since = performance.now()
  const row = await needSchedule(deps, caller, id)
  const [last] = await listTicks(deps, caller, { id, before: undefined, limit: 1 })
  const about = { schedule: id, nextAt: row.nextAt, last: last?.gap ?? null }
  const said = standsStill(row) ?? waits(row) ?? (await meets(deps, row)) ?? ticks(row)
  if (isLongAgo(since)) await call.stay()
  return { ...about, ...said }
}

type Said = Pick<ScheduleWhy, 'code' | 'message' | 'change' | 'since'>

const time = (at: number) => new Date(at).toISOString()

function standsStill(row: ScheduleRow): Said | undefined {
  const { workflowSlug: slug, id } = row
  if (row.endedBecause === 'not-in-descriptor')
    return {
      code: 'ENDED',
      message: `The descriptor of \`${slug}\` has it no longer.`,
      change: 'Deploy a version that has it, or make one current: it goes on as itself.',
      since: row.endedAt,
    }
  if (row.restsBecause === 'workflow-deleted')
    return {
      code: 'WORKFLOW_DELETED',
      message: `The workflow \`${slug}\` is deleted; what ticks meanwhile is skipped.`,
      change: 'An admin can restore the workflow.',
      since: row.restsSince,
    }
  // No resumption brings a time back.
  if (row.endedAt !== null) return overOf(row)
  const by = row.pausedBy ?? 'its descriptor'
  if (row.restsBecause === 'paused')
    return {
      code: 'PAUSED',
      message: `It is paused by ${by}; what ticks meanwhile is skipped.`,
      change: `\`windlass schedules resume ${id}\` lets it go on.`,
      since: row.restsSince,
    }
  if (row.stoppedBecause !== null)
    return {
      code: 'ZONE_UNKNOWN',
      message: row.stoppedBecause,
      change: 'Give it another `timezone`, or start a coordinator with newer zone data (a newer Node).',
      since: null,
    }
  return undefined
}

function overOf({ last, at, endedAt }: ScheduleRow): Said {
  const outcome = last?.at === at ? 'It has fired.' : 'It has fired no run; see `last`.'
  return { code: 'ENDED', message: `Its time has passed. ${outcome}`, change: 'Give it another `at`.', since: endedAt }
}

/** Its tick waits for an agent: see held.ts. */
function waits({ heldSince, nextAt, now }: ScheduleRow): Said | undefined {
  if (heldSince === null || nextAt === null || nextAt > now) return undefined
  const message =
    `Its tick of ${time(nextAt)} waits: a run of it is unfinished, and its agent is out of reach or has come back ` +
    'just now, so nobody knows whether the run has ended.'
  const change =
    'Nothing has to be changed: `overlap` decides once the agent was heard, once the run is taken from it, or after ' +
    `${MOST_HELD_MS / 60_000} minutes.`
  return { code: 'TICKS', message, change, since: heldSince }
}

/** What the next tick would be refused for. */
async function meets(deps: PrepareDeps & { db: Db }, row: ScheduleRow): Promise<Said | undefined> {
  const found = await startedBy(deps, row, askOf(row, { kind: 'schedule', id: row.id }))
  if ('refusal' in found) return refusedNext(found.refusal)
  if (row.overlap !== 'skip') return undefined
  const runs = (await unfinishedOf(deps.db, [{ id: row.id, most: 1 }])).get(row.id)
  const run = runs?.at(-1)
  if (run === undefined) return undefined
  const message = `Its run ${run} has not finished: with \`overlap: skip\` ticks start no other one.`
  const change = `The run itself; \`windlass runs why ${run}\` tells why it does not end. Or another \`overlap\`.`
  return { code: 'OVERLAP', message, change, since: null }
}

const CHANGES: Partial<Record<Refusal['reason'], string>> = {
  WORKFLOW_DISABLED: 'Enable the workflow.',
  WORKFLOW_DELETED: 'An admin can restore the workflow.',
  ENVIRONMENT_GONE: 'Name another environment, or create it again where the descriptor names it.',
  POOL_GONE: 'Create the pool, or deploy the workflow with another `pool`.',
  INPUT_INVALID: 'Change the input of the schedule, or what `run` of the workflow takes.',
}

function refusedNext({ reason, message }: Refusal): Said {
  const change = CHANGES[reason] ?? 'What the message names.'
  return { code: reason as ScheduleWhy['code'], message: `Ticks are skipped: ${message}`, change, since: null }
}

/** A pass takes some seconds at most; what is put off is tried again after 5 s, or after a minute. */
const OVERDUE_MS = 90_000

function ticks(row: ScheduleRow): Said {
  if (row.nextAt !== null && row.now - row.nextAt - row.jitterMs > OVERDUE_MS) return overdue(row, row.nextAt)
  const at = row.nextAt === null ? '' : ` Its next tick is at ${time(row.nextAt)}.`
  return { code: 'TICKS', message: `It starts runs.${at}`, change: 'Nothing has to be changed.', since: null }
}

function overdue({ now, jitterMs }: ScheduleRow, nextAt: number): Said {
  const lateMs = now - nextAt - jitterMs
  const late = `its tick of ${time(nextAt)} is ${Math.floor(lateMs / 1000)} s late`
  const turns =
    'the schedules of the org take their turns, the most overdue first, and more is due than is done in time'
  const message = `It starts runs, but ${late}: ${turns}.`
  const change =
    'Let schedules tick less often, and take slow patterns out of the input schemas of their workflows. ' +
    'An admin of the coordinator finds `schedule.undecided`, `schedules.putOff` or `schedule.failed` in its log ' +
    'where it could not fire.'
  return { code: 'TICKS', message, change, since: nextAt }
}
