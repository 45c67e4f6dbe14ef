import type { OrgId, WorkflowId } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'
import type { Timers } from '../engine/commit/clock.ts'
import { leftOut } from '../engine/commit/left-out.ts'
import { createOrgLine, openLimitedSeats, type OrgLine } from '../engine/commit/org-line.ts'
import { createSlowOrgs, type SlowOrgs } from '../limits/slow-orgs.ts'
import type { Targets } from '../workflows/targets.ts'
import type { Begun } from './begun.ts'
import { createPatience, type Patience } from './patience.ts'
import type { ScheduleRow } from './row.ts'
import type { PassedOver } from './store-settle.ts'

export type Waiting = Pick<ScheduleRow, 'id' | 'orgId' | 'workflowId'> & { begun?: Begun }

/**
 * Schedules whose runs may wait for the locks of limits, or whose ticks take long to decide: no others wait for them,
 * and each org has its turn.
 */
export interface SchedulesBehind extends OrgLine<Waiting> {
  /** Orgs whose ticks took long to decide in the last seconds. */
  slowOrgs: SlowOrgs
  /** Of passes, whose ticks wait for each other. */
  patience: Patience
}

/** Of one org: they are decided when they have their turn, and one piece of them may wait for the locks of its org. */
const AT_ONCE = 100
/** Number of workflows that a look leaves out one by one: it compares each schedule with all of them. */
const WORKFLOWS_LEFT_OUT = 400
/** Somebody else holds all of them. */
const LOOK_AGAIN_MS = 100

export function openSchedulesBehind({ log, scheduleTimers }: { log: Log; scheduleTimers: Timers }): SchedulesBehind {
  const onFree = () => scheduleTimers.expect(0)
  const of = 'schedules behind others'
  const line = createOrgLine<Waiting>({ log, of, most: AT_ONCE, mostItems: AT_ONCE, seats: openLimitedSeats(), onFree })
  return { ...line, slowOrgs: createSlowOrgs(), patience: createPatience() }
}

interface BehindDeps {
  schedulesBehind: SchedulesBehind
  targets: Targets
}

/** What the look for what is due leaves out: the other schedules of an org go on. */
export function passedOver({ schedulesBehind }: Pick<BehindDeps, 'schedulesBehind'>): PassedOver {
  const out = leftOut(schedulesBehind.here(), ({ workflowId }) => workflowId, WORKFLOWS_LEFT_OUT)
  return { orgs: out.orgs, workflows: out.keys }
}

export const isNothing = ({ orgs, workflows }: PassedOver) => orgs.length === 0 && workflows.length === 0

/** Does what has its turn behind others; false: somebody else is changing all of them. */
type Settle = (some: readonly Waiting[]) => Promise<boolean>

/** What this pass does. An org that was slow before is behind it with all it has. */
export async function withoutBehind(
  deps: BehindDeps,
  rows: readonly ScheduleRow[],
  settle: Settle,
): Promise<{ mine: ScheduleRow[]; isAnyBehind: boolean }> {
  const limited = await limitedAmong(deps.targets, rows)
  const { slowOrgs } = deps.schedulesBehind
  const isBehind = ({ workflowId, orgId }: ScheduleRow) => limited.has(workflowId) || slowOrgs.isSlow(orgId)
  const behind = rows.filter(isBehind)
  putBehind(deps, behind, settle)
  return { mine: rows.filter((row) => !behind.includes(row)), isAnyBehind: behind.length > 0 }
}

/** Each org has a turn of its own, also where nothing is limited. */
export function putBehind(
  { schedulesBehind }: Pick<BehindDeps, 'schedulesBehind'>,
  some: readonly Waiting[],
  settle: Settle,
): void {
  schedulesBehind.add(
    some.map(({ id, orgId, workflowId, begun }) => {
      return { item: { id, orgId, workflowId, ...(begun && { begun }) }, weight: 1, isLimited: true }
    }),
    async (mine) => {
      if (!(await settle(mine))) await pause(LOOK_AGAIN_MS)
    },
  )
}

/** Workflows whose next runs are limited. Of what cannot be looked up, whoever decides its ticks says so. */
async function limitedAmong(targets: Targets, rows: readonly ScheduleRow[]): Promise<Set<WorkflowId>> {
  const workflows = new Map<WorkflowId, OrgId>(rows.map(({ workflowId, orgId }) => [workflowId, orgId]))
  const looks = [...workflows].map(async ([id, orgId]) => {
    const terms = await targets.terms(orgId, id).catch(() => undefined)
    return terms?.isLimited ? [id] : []
  })
  return new Set((await Promise.all(looks)).flat())
}
