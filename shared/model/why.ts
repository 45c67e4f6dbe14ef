import { z } from 'zod'
import { InputId, RunId, RunnerId } from '../ids.ts'
import { Loss, RunStatus } from './run.ts'

const At = z.int().meta({ description: 'Milliseconds since the Unix epoch.' })

/** One thing that a run waits for. */
const Cause = z.object({
  code: z.enum([
    'FINISHED',
    'BLOCKED',
    'NO_RUNNER',
    'LABELS_MISSING',
    'SLOTS_MISSING',
    'RUNNERS_UNFIT',
    'RUNNERS_CLOSED',
    'RUNNERS_BUSY',
    'DATABASE_RESTORED',
    'RUNS_AHEAD',
    'DELAYED',
    'THROTTLED',
    'DEBOUNCED',
    'RETRY_BACKOFF',
    'PUT_OFF',
    'CONCURRENCY_LIMIT',
    'STARTING',
    'EXECUTING',
    'RUNNER_SILENT',
    'REPORTS_REFUSED',
    'SLEEP',
    'INPUT',
    'CHILD',
    'RESUMING',
    'CANCELLING',
  ]),
  message: z.string().meta({ description: 'A sentence for people.' }),
  since: At.nullable(),
  until: At.nullable().meta({ description: 'When it ends by itself; null when it does not, or nobody knows.' }),
  change: z.string().meta({ description: 'Who could change it, and how.' }),
  inputId: InputId.optional(),
  childRunId: RunId.optional(),
  /** Runs that hold what this one waits for, 10 at most. */
  runIds: z.array(RunId).optional(),
  at: z.string().optional().meta({ description: 'File and line of the call in the program.' }),
})

export const Why = z
  .object({
    run: RunId,
    status: RunStatus,
    since: At.meta({ description: 'When the run came into its status.' }),
    summary: z.string().meta({ description: 'The answer in one sentence.' }),
    process: z
      .object({
        place: z.enum(['starting', 'executing', 'replaying', 'parked']),
        runner: z.object({ id: RunnerId, name: z.string() }),
      })
      .nullable()
      .meta({
        description:
          'The process of the run. `parked`: it waits without a slot. Null: there is none, and any runner of the pool may make one.',
      }),
    losses: z.array(Loss).meta({ description: 'How it lost its process before, the last first; 20 at most.' }),
    causes: z.array(Cause).meta({ description: 'Everything that it waits for, the first thing first.' }),
    runners: z
      .array(
        z.object({
          id: RunnerId,
          name: z.string(),
          takes: z.boolean(),
          reason: z.string().meta({ description: 'Why it does not take the run, or that it would.' }),
        }),
      )
      .meta({ description: 'Every runner of the pool, for a run that waits for one.' }),
  })
  .meta({ id: 'Why' })
export type Why = z.output<typeof Why>
export type Cause = z.output<typeof Cause>
