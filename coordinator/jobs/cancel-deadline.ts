import type { Config } from '../config.ts'
import { enqueueDeadlines } from '../engine/commit/enqueue-deadlines.ts'
import { loseRuns } from '../engine/commit/lose.ts'
import { type Deadline, type Jobs, TURN_MS } from './queue.ts'

/** Lost in one go. */
const AT_ONCE = 25

type Job = Jobs['runs:cancelDeadline']
type Deps = Parameters<typeof loseRuns>[0] & { config: Config }

/**
 * An agent that is heard of, and says nothing of a run, must not hold it in `cancelling` for ever. One that is silent
 * may not know of it, and goes on as long as its lease says: those are looked at again. What is left after a turn is
 * for a further job.
 */
export async function cancelDeadline(deps: Deps, job: Job | Deadline): Promise<void> {
  // Versions before this one have left a job for each run.
  const { orgId, runs } = 'runs' in job ? job : { orgId: '', runs: [job] }
  const silent: Deadline[] = []
  const since = performance.now()
  let at = 0
  for (; at < runs.length && (at === 0 || performance.now() - since < TURN_MS); at += AT_ONCE)
    silent.push(...(await loseHeard(deps, runs.slice(at, at + AT_ONCE))))
  await deps.db.begin(async (tx) => {
    if (silent.length > 0) await enqueueDeadlines(tx, { orgId, runs: silent }, deps.config.leaseMs)
    if (at < runs.length) await enqueueDeadlines(tx, { orgId, runs: runs.slice(at) }, 0)
  })
}

/** Answers those whose agents are silent. */
async function loseHeard(deps: Deps, runs: readonly Deadline[]): Promise<Deadline[]> {
  const epochs = new Map(runs.map(({ runId, epoch }) => [runId, epoch]))
  const silent = new Map<string, Deadline>()
  await loseRuns(deps, [...epochs.keys()], {
    reason: 'its agent did not report the end of its processes in time',
    isLost({ runId, epoch, leaseOver, silentMs }) {
      if (epoch !== epochs.get(runId)) return false
      const isHeard = silentMs < deps.config.leaseMs
      if (!isHeard && !leaseOver) silent.set(runId, { runId, epoch })
      return isHeard || leaseOver
    },
  })
  return [...silent.values()]
}
