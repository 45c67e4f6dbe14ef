import { z } from 'zod'
import { InputId, RunId, Slug, WorkflowId } from '../ids.ts'

export const INPUT_STATUSES = ['open', 'answered', 'timed_out', 'closed'] as const
export const InputStatus = z.enum(INPUT_STATUSES)
export type InputStatus = z.output<typeof InputStatus>

const At = z.int().meta({ description: 'Milliseconds since the Unix epoch.' })

/** A question that a run asks of people. */
export const PendingInput = z
  .object({
    id: InputId,
    run: z.object({ id: RunId, workflow: z.object({ id: WorkflowId, slug: Slug }) }),
    status: InputStatus.meta({ description: '`closed`: its run has ended, or does not ask any more.' }),
    prompt: z.string(),
    schema: z
      .union([z.record(z.string(), z.unknown()), z.boolean()])
      .nullable()
      .meta({ description: 'JSON Schema of the answer; null takes any JSON.' }),
    createdAt: At,
    dueAt: At.nullable().meta({ description: 'When it times out.' }),
    closedAt: At.nullable(),
    answer: z
      .unknown()
      .optional()
      .meta({ description: 'Only when answered; a list leaves out what is larger than 16 KiB.' }),
    answeredBy: z.string().nullable(),
  })
  .meta({ id: 'PendingInput' })
export type PendingInput = z.output<typeof PendingInput>
