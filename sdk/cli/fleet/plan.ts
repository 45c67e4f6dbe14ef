import type { DrainPlan } from '@windlass/shared/model/runner.ts'
import { printTable } from '../table.ts'
import { cellTime, note, paint, print, safe } from '../terminal.ts'

const OUTCOMES: Record<DrainPlan['live'][number]['outcome'], string> = {
  finishes: 'ends here',
  moves: 'moves elsewhere',
  'returns-to-queue': 'goes back to the queue',
}

/** What a drain meets: a row for each run that the machine has, then what else is worth knowing. */
export async function tellPlan(plan: DrainPlan): Promise<void> {
  const rows = plan.live.map((each) => [
    each.run,
    each.workflow,
    each.status,
    OUTCOMES[each.outcome],
    cellTime(each.since),
    cellTime(each.latestEndAt),
  ])
  await printTable(['RUN', 'WORKFLOW', 'STATUS', 'IN A DRAIN', 'SINCE?', 'ENDS AT LATEST?'], rows)
  if (rows.length === 0) print('It has no runs: a drain is over at once.')
  const others = plan.othersTakeWork === 1 ? '1 other runner takes' : `${plan.othersTakeWork} other runners take`
  note(`${others} work in the pool, where ${plan.queuedRuns} runs are queued.`)
  for (const warning of plan.warnings) note(paint('yellow', safe(warning, process.stderr)))
}
