import type { Tx } from '../db/client.ts'
import { unnest } from '../db/unnest.ts'

/** The jobs that exist, and what each is given. */
export interface Jobs {
  'runs:cancelDeadline': { runId: string; epoch: number }
  /** `upTo`: only those that were called by this entry of the journal or one before it, and what they have called. */
  'runs:cancelDescendants': { runId: string; orgId: string; by: string; reason: string; upTo?: number }
  /** What runs of a schedule end for others of it. */
  'runs:cancel': { runIds: string[]; reason: string }
  /** Takes away the log and the journal of a deleted run; `most` is the last number in them. */
  'runs:erase': { runId: string; orgId: string; most: number }
  /** One turn of a job that does something to many runs. */
  'runs:bulk': { jobId: string }
}

export interface NewJob<J extends keyof Jobs> {
  payload: Jobs[J]
  inMs: number
  /** A job with the key of an earlier one replaces it. */
  key: string
  /** Jobs of one queue are done one after the other. */
  queue?: string
}

/** Adds jobs inside a transaction: they exist exactly if the transaction is committed. */
export async function enqueue<J extends keyof Jobs>(tx: Tx, name: J, jobs: readonly NewJob<J>[]): Promise<void> {
  if (jobs.length === 0) return
  await tx`
    select graphile_worker.add_job(
      ${name}, payload := j.payload::json, queue_name := j.queue,
      run_at := now() + j.in_ms * interval '1 millisecond', job_key := j.key
    )
    from ${unnest(tx, 'j', jobs, {
      payload: ['text', (job) => JSON.stringify(job.payload)],
      queue: ['text', (job) => job.queue ?? null],
      inMs: 'float8',
      key: 'text',
    })}`
}
