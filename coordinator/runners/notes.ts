import type { RunnerNotes } from '../engine/commit/runner-notes.ts'
import { type IntakeDeps, noteFailure, noteUnaccepted } from './intake.ts'

/** Keeps runners from work by what the engine finds out about them. */
export function createRunnerNotes(deps: IntakeDeps): RunnerNotes {
  return {
    failed: (runnerId, what) => noteFailure(deps, runnerId, what),
    unaccepted: (runnerIds) => noteUnaccepted(deps, runnerIds),
  }
}
