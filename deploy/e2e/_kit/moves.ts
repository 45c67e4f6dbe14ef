import type { RunEvent } from '@windlass/shared/model/event.ts'
import { RUN_STATUSES, type RunStatus } from '@windlass/shared/model/run.ts'

export type Move = readonly [from: RunStatus, to: RunStatus]

/** What the lifecycle events of a run say of its moves, as pairs of statuses. The first status is where it was created. */
export function movesOf(events: readonly RunEvent[]): Move[] {
  const path = events.flatMap((event) => statusIn(event) ?? [])
  return path.slice(1).map((to, index): Move => [path[index]!, to])
}

function statusIn({ channel, type }: RunEvent): RunStatus | undefined {
  if (channel !== 'lifecycle') return undefined
  const name = type.replace(/^run\./, '')
  // They say more than the status, and stand for it.
  if (name === 'resumed') return 'running'
  return RUN_STATUSES.find((status) => status === name)
}
