import { listTicks, whyOfSchedule } from '../schedules/ticks.ts'
import { runSchedule } from '../schedules/run-now.ts'
import { createSchedule, deleteSchedule, getSchedule, listSchedules, updateSchedule } from '../schedules/schedules.ts'
import { findWorkflow } from '../workflows/read.ts'
import type { HandlersFor } from './call.ts'
import { keyIn, made } from './keyed.ts'
import { decodeCursor, pageOf } from './page.ts'
import type { Needs } from '@windlass/shared/needs.ts'

type SchedulesNeeds = Needs<
  | typeof createSchedule
  | typeof deleteSchedule
  | typeof findWorkflow
  | typeof getSchedule
  | typeof listSchedules
  | typeof listTicks
  | typeof runSchedule
  | typeof updateSchedule
  | typeof whyOfSchedule
>

export const schedules = (deps: SchedulesNeeds): HandlersFor<'schedules'> => ({
  create: async (call) => made(await createSchedule(deps, call, call.input, keyIn(call))),

  list: async ({ input: { workflow, cursor, limit }, caller }) => {
    const { orgId } = caller
    const workflowId = workflow === undefined ? undefined : (await findWorkflow(deps, orgId, workflow))?.id
    if (workflow !== undefined && workflowId === undefined) return { schedules: [], nextCursor: null }
    const before = decodeCursor(cursor, /^sch_[0-9a-z]{26}$/)
    const { schedules: found, fitting } = await listSchedules(deps, { orgId, workflowId, before, limit })
    const { rows, nextCursor } = pageOf(found, fitting, (row) => row.id)
    return { schedules: rows, nextCursor }
  },

  get: async ({ input, caller }) => ({ schedule: await getSchedule(deps, caller, input.schedule) }),

  update: async (call) => ({ schedule: await updateSchedule(deps, call, call.input) }),

  delete: async ({ input, caller }) => {
    await deleteSchedule(deps, caller, input.schedule)
    return {}
  },

  run: async (call) => {
    const { schedule: id, input } = call.input
    return made(await runSchedule(deps, call, { id, input, key: keyIn(call) }))
  },

  ticks: async ({ input: { schedule, cursor, limit }, caller }) => {
    const before = decodeCursor(cursor, /^\d{1,18}$/)
    const found = await listTicks(deps, caller, { id: schedule, before, limit: limit + 1 })
    const { rows, nextCursor } = pageOf(found, limit, ({ id }) => id)
    return { ticks: rows.map(({ gap }) => gap), nextCursor }
  },

  why: async (call) => ({ why: await whyOfSchedule(deps, call, call.input.schedule) }),
})
