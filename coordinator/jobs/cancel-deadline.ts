import { enqueueDeadlines } from '../engine/commit/enqueue-deadlines.ts'
import { loseRuns } from '../engine/commit/lose.ts'
import { type Deadline, type Jobs, TURN_MS } from './queue.ts'

/** Lost in one go. */
const AT_ONCE = 25

type Job = Jobs['runs:cancelDeadline']

/** Silent agents must not hold runs in `cancelling` for ever. What is left after a turn is for a further job. */
export async function cancelDeadline(deps: Parameters<typeof loseRuns>[0], job: Job | Deadline): Promise<void> {
  // Versions before this one have left a job for each run.
  const { orgId, runs } = 'runs' in job ? job : { orgId: '', runs: [job] }
  const epochs = new Map(runs.map(({ runId, epoch }) => [runId, epoch]))
  const since = performance.now()
  for (let at = 0; at < runs.length; at += AT_ONCE) {
    const left = runs.slice(at)
    if (at > 0 && performance.now() - since > TURN_MS)
      return deps.db.begin((tx) => enqueueDeadlines(tx, { orgId, runs: left }, 0))
    const ids = left.slice(0, AT_ONCE).map(({ runId }) => runId)
    await loseRuns(deps, ids, {
      reason: 'its agent did not report the end of its processes in time',
      isLost: ({ runId, epoch }) => epoch === epochs.get(runId),
    })
  }
}
