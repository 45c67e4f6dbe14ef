import type { RunnerId, RunId } from '@windlass/shared/ids.ts'

export interface QueueHead {
  runId: RunId
  needs: string
  isResume: boolean
  priority: number
  position: number
  /** It has waited for so long that a runner is kept for it. */
  isOld: boolean
}

/** A pool gives out continued runs first, then the higher priority, then the older. */
export function goesBefore(a: QueueHead, b: QueueHead): boolean {
  if (a.isResume !== b.isResume) return a.isResume
  return a.priority === b.priority ? a.position < b.position : a.priority > b.priority
}

export interface Candidate {
  runnerId: RunnerId
  /** Its own and those of its pool. */
  labels: string[]
  /** In all, and those that nothing occupies. */
  slots: number
  free: number
}

/** Which run is to go to which runner, and how many of its slots it takes. */
export interface Pair {
  runId: RunId
  runnerId: RunnerId
  slots: number
}

/** A runner that is kept for a run that has waited for long: what comes after the run gets nothing there. */
export interface Reservation {
  run: QueueHead
  runnerId: RunnerId
}
