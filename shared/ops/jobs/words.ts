import type { z } from 'zod'
import type { Job } from '../../model/job.ts'
import type { ExamplesOf } from '../example.ts'
import { DAY_MS, IDS, NINE } from '../example-things.ts'

/** Just asked for. */
export const BULK_CANCEL: z.input<typeof Job> = {
  id: IDS.job,
  org: 'acme',
  kind: 'bulk-cancel',
  filter: { status: ['queued'], workflow: IDS.workflow },
  dryRun: false,
  status: 'running',
  error: null,
  matched: 0,
  done: 0,
  failed: 0,
  failures: {},
  createdAt: NINE,
  deadlineAt: NINE + DAY_MS,
  finishedAt: null,
}

const HALF = { ...BULK_CANCEL, matched: 9_000, done: 4_200, failed: 3, failures: { RUN_ALREADY_FINISHED: 3 } }

export const jobs: ExamplesOf<'jobs'> = {
  list: {
    about: 'Jobs are kept for 30 days after their end. Pages are joined by `nextCursor`.',
    input: { org: 'acme', limit: 20 },
    output: { jobs: [HALF], nextCursor: null },
    fields: { status: 'Only those of this status.' },
  },
  get: {
    about: [
      'A job first finds its runs, the newest first, and then works them off in pieces; jobs take turns, so that',
      'one of a large org holds up nobody. It goes on when a coordinator was killed, and does nothing twice to a',
      'run.',
    ].join(' '),
    input: { job: IDS.job },
    output: { job: HALF },
  },
  cancel: {
    about: [
      'The piece that is under way is finished. Asked again it changes nothing; a job that has completed or failed',
      'is refused with `CONFLICT`. That of a deleted workflow needs the role and scope that delete one.',
    ].join(' '),
    input: { job: IDS.job },
    output: { job: { ...HALF, status: 'cancelled', finishedAt: NINE + 4000 } },
  },
}
