import type { RunnerId } from '@windlass/shared/ids.ts'

/** What moving runs finds out about runners. Whether they are given work is not decided here. */
export interface RunnerNotes {
  /** Its machine could not prepare a run. */
  failed(runnerId: RunnerId, what: string): Promise<void>
  /** These did not take in time what they were offered. */
  unaccepted(runnerIds: readonly RunnerId[]): Promise<void>
}
