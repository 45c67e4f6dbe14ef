import type { Tx } from '../db/client.ts'

/** The jobs that exist, and what each is given. */
export interface Jobs {
  'runs:cancelDeadline': { runId: string; epoch: number }
  /** `upTo`: only those that were called by this entry of the journal or one before it, and what they have called. */
  'runs:cancelDescendants': { runId: string; orgId: string; by: string; reason: string; upTo?: number }
}

/** Adds a job inside a transaction: it exists exactly if the transaction is committed. The same key replaces an earlier job. */
export async function enqueue<J extends keyof Jobs>(
  tx: Tx,
  name: J,
  payload: Jobs[J],
  /** Jobs of one `queue` are done one after the other. */
  when: { inMs: number; key: string; queue?: string },
): Promise<void> {
  await tx`
    select graphile_worker.add_job(
      ${name},
      payload := ${tx.json({ ...payload })}::json,
      queue_name := ${when.queue ?? null},
      run_at  := now() + ${when.inMs} * interval '1 millisecond',
      job_key := ${when.key}
    )`
}
