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
