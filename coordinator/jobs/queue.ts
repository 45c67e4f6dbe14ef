import type { Tx } from '../db/client.ts'
import { unnest } from '../db/unnest.ts'

/** The jobs that exist, and what each is given. */
export interface Jobs {
  'runs:cancelDeadline': { orgId: string; runs: Deadline[] }
  /** What these runs of one org have called. */
  'runs:cancelBelow': { orgId: string; parents: Parent[] }
  /** The same for one run: versions before this one have left such jobs. */
  'runs:cancelDescendants': Parent & { orgId: string }
  /** Runs of schedules of one org that end for others of them. */
  'schedules:endRuns': { orgId: string; ends: EndOfRuns[] }
  /** The same for one schedule: versions before this one have left such jobs. */
  'runs:cancel': { runIds: string[]; reason: string }
  /** Takes away logs and journals of the deleted runs of an org. */
  'runs:eraseDeleted': { orgId: string }
  /** The same for one run, behind `after`: versions before this one have left such jobs. */
  'runs:erase': { runId: string; orgId: string; most: number; after?: number }
  /** A turn in which an org deletes what it keeps no longer. */
  'retention:turn': { orgId: string }
  /** Lets in runs of an org that wait in lines with room for more than one transaction lets in. */
  'runs:admit': { orgId: string }
  /** A turn of that one of an org's jobs over many runs that was served least recently. */
  'bulkJobs:turn': { orgId: string }
  /** The same for a list of jobs of one org, and for one: versions before this one have left such jobs. */
  'runs:bulkTurns': { orgId: string; jobId: string }[]
  'runs:bulk': { jobId: string }
}

/** When it comes, the run is lost if it is on this placement still. */
export interface Deadline {
  runId: string
  epoch: number
}

/** A run below which runs are cancelled. */
export interface Parent {
  runId: string
  by: string
  /** What the logs of the runs below it say. */
  reason: string
  /** Only those that were called by this entry of the journal or one before it, and what they have called. */
  upTo?: number
}

/** Unfinished runs of a schedule, the newest first; the new run for which they end; and whether older ones remain. */
export interface EndOfRuns {
  schedule: string
  newRun: string
  runIds: string[]
  isAll: boolean
}

/** The lower number goes first: nobody waits for what is erased. The others go in the order in which they came due. */
const PRIORITIES: Partial<Record<keyof Jobs, number>> = { 'runs:eraseDeleted': 1, 'retention:turn': 1 }

/** A job works for so long, then it is the turn of others: each turn holds one of the two workers. */
export const TURN_MS = 1000

export interface NewJob<J extends keyof Jobs> {
  payload: Jobs[J]
  inMs: number
  /** A job with the key of an earlier one replaces it. */
  key: string
}

/**
 * Jobs of one queue are done one after the other. Those of an org share one, whatever their kind: an org with much to
 * do holds one worker at a time, and the other one is there for other orgs.
 */
function queueOf({ payload }: Pick<NewJob<keyof Jobs>, 'payload'>): string | null {
  const about = Array.isArray(payload) ? payload[0] : payload
  return about && 'orgId' in about ? about.orgId : null
}

/** The second one sees the job that was begun in the moment of the first. */
const TRIES = 5

/** Adds jobs inside a transaction: they exist exactly if the transaction is committed. */
export async function enqueue<J extends keyof Jobs>(tx: Tx, name: J, jobs: readonly NewJob<J>[]): Promise<void> {
  let left = jobs
  for (let tries = 0; tries < TRIES && left.length > 0; tries++) {
    const keys = await addThese(tx, name, left)
    left = left.filter(({ key }) => keys.has(key))
  }
  if (left.length > 0) throw new Error(`${name} could not be added: ${left.map(({ key }) => key).join(', ')}`)
}

/**
 * Answers the keys of those that were not added, of which `add_job` says nothing: a worker began the job of before just
 * when it was to be replaced. It does not see what this transaction writes, so a new one has to come behind it.
 */
async function addThese<J extends keyof Jobs>(tx: Tx, name: J, jobs: readonly NewJob<J>[]): Promise<Set<string>> {
  const rows = await tx<{ key: string }[]>`
    select j.key
    from ${unnest(tx, 'j', jobs, {
      payload: ['text', (job) => JSON.stringify(job.payload)],
      queue: ['text', queueOf],
      inMs: 'float8',
      key: 'text',
    })}
    cross join lateral graphile_worker.add_job(
      ${name}, payload := j.payload::json, queue_name := j.queue,
      run_at := now() + j.in_ms * interval '1 millisecond', job_key := j.key,
      priority := ${PRIORITIES[name] ?? 0}
    ) added
    where added.id is null`
  return new Set(rows.map(({ key }) => key))
}
