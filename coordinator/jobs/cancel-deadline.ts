import { loseRuns } from '../engine/commit/lose.ts'
import type { Jobs } from './queue.ts'

/** A silent agent must not hold a run in `cancelling` for ever. */
export async function cancelDeadline(
  deps: Parameters<typeof loseRuns>[0],
  job: Jobs['runs:cancelDeadline'],
): Promise<void> {
  await loseRuns(deps, [job.runId], {
    reason: 'its agent did not report the end of its processes in time',
    isLost: (placement) => placement.epoch === job.epoch,
  })
}
