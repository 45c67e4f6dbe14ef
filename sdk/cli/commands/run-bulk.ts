import type { Command } from 'commander'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Job } from '@windlass/shared/model/job.ts'
import { pause } from '@windlass/shared/time.ts'
import { patiently } from '../../client/patience.ts'
import { begun } from '../begun.ts'
import { EXIT } from '../exit-codes.ts'
import { rowArgs, rowCommand } from '../from-table.ts'
import { during } from '../progress.ts'
import { does, type Session } from '../session.ts'
import { note, print, safe } from '../terminal.ts'

/** The commands of `windlass runs` that begin a job: the members of its filter are flags, and `--wait` follows it. */
export function addBulk(group: Command): void {
  addBulkCancel(group)
  addBulkRetry(group)
}

const countsOf = ({ done, failed, matched }: Job) => `${done} of ${matched}${failed > 0 ? `, ${failed} failed` : ''}`

/** With the members of the filter as flags of their own, beside the rest of the row. */
const CANCEL = (() => {
  const { filter, ...rest } = ops.runs.bulkCancel.input.shape
  return { ...ops.runs.bulkCancel, input: filter.extend(rest) }
})()
const RETRY = (() => {
  const { filter, ...rest } = ops.runs.bulkRetry.input.shape
  return { ...ops.runs.bulkRetry, input: filter.extend(rest) }
})()

const HELP = `
Without --wait it answers at once, and the service goes on by itself: windlass jobs get <job> tells how far it is.
With --wait the exit code is 1 when it failed or left out a run, 3 when it was cancelled.`

function addBulkCancel(group: Command): void {
  const help = `${HELP}
  windlass runs bulk-cancel --workflow hello --status queued --dry-run
  windlass runs bulk-cancel --workflow hello --status queued --wait`
  const command = rowCommand(group, 'bulk-cancel', CANCEL, help).option('--wait', 'wait until all is done')
  does(command, async (session, positional, options) => {
    const { reason, dryRun, ...filter } = await rowArgs(CANCEL, positional, options)
    const { job } = await session.client.runs.bulkCancel({ filter, reason, dryRun })
    return follow(session, job, options['wait'] === true)
  })
}

function addBulkRetry(group: Command): void {
  const help = `${HELP}
  windlass runs bulk-retry --status failed --created-after 2d --dry-run
  windlass runs bulk-retry --status failed --created-after 2d --wait`
  const command = rowCommand(group, 'bulk-retry', RETRY, help).option('--wait', 'wait until all is done')
  does(command, async (session, positional, options) => {
    const { dryRun, idempotencyKey, ...filter } = await rowArgs(RETRY, positional, options)
    const key = idempotencyKey === undefined ? {} : { idempotencyKey }
    const { job } = await session.client.runs.bulkRetry({ filter, dryRun, ...key })
    return follow(session, job, options['wait'] === true)
  })
}

const LOOK_MS = 500

/**
 * A dry run is over in moments, and its count is all that is wanted of it. Answers with the exit code: how the job has
 * ended, where that was waited for.
 */
async function follow(session: Session, asked: Job, isWaiting: boolean): Promise<number> {
  const waits = isWaiting || asked.dryRun
  const job = waits ? await during(session.progress, `job ${asked.id}`, ended(session, asked)) : asked
  await session.answer({ job }, () => {
    if (job.dryRun && job.status === 'completed') return print(`${job.matched} runs would be taken`)
    print(job.status === 'running' ? job.id : `${job.id} is ${job.status}: ${countsOf(job)}`)
    tellTrouble(job)
    if (job.status === 'running') note(`Next: windlass jobs get ${job.id}`)
  })
  return waits ? exitOf(job) : EXIT.ok
}

function tellTrouble({ error, failures }: Job): void {
  if (error !== null) note(safe(error, process.stderr))
  const reasons = Object.entries(failures).map(([code, runs]) => `${runs} ${code}`)
  if (reasons.length > 0) note(safe(`not done: ${reasons.join(', ')}`, process.stderr))
}

/** A run that has ended by itself needs no cancel any more. */
function exitOf({ kind, dryRun, status, failed, failures }: Job): number {
  if (status === 'cancelled') return EXIT.cancelled
  const endedBefore = kind === 'bulk-cancel' ? (failures['RUN_ALREADY_FINISHED'] ?? 0) : 0
  const isDone = status === 'completed' && (dryRun || failed <= endedBefore)
  return isDone ? EXIT.ok : EXIT.failed
}

async function ended(session: Session, asked: Job): Promise<Job> {
  const { id } = asked
  let job = asked
  while (job.status === 'running') {
    await pause(LOOK_MS)
    const look = () => session.client.jobs.get({ job: id })
    job = await patiently(look).then(
      (answer) => answer.job,
      (error: unknown) => {
        const what = `Stopped waiting for ${id}, which that does not end`
        throw begun(error, { what, next: `windlass jobs get ${id}`, detail: { job: id } })
      },
    )
  }
  return job
}
