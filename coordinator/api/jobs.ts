import type { Needs } from '@windlass/shared/needs.ts'
import { cancelJob, getJob, listJobs } from '../bulk/read.ts'
import type { HandlersFor } from './call.ts'
import { decodeCursor, pageOf } from './page.ts'

type JobsNeeds = Needs<typeof cancelJob | typeof getJob | typeof listJobs>

export const jobs = (deps: JobsNeeds): HandlersFor<'jobs'> => ({
  list: async ({ input: { status, cursor, limit }, caller }) => {
    const before = decodeCursor(cursor, /^job_[0-9a-z]{26}$/)
    const { jobs: found, fitting } = await listJobs(deps, caller.orgId, { status, before, limit })
    const { rows, nextCursor } = pageOf(found, fitting, (job) => job.id)
    return { jobs: rows, nextCursor }
  },

  get: async ({ input, caller }) => ({ job: await getJob(deps, caller, input.job) }),

  cancel: async ({ input, caller }) => ({ job: await cancelJob(deps, caller, input.job) }),
})
