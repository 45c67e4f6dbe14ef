import type { Plan } from './plan.ts'
import type { ScheduleRow } from './row.ts'

/** A tick is being decided still, and its pass waits for it no longer: its turn behind the others goes on with that. */
export interface Begun {
  /** Null: the schedule has changed since, or what was decided is too old by now. */
  planFor(row: Pick<ScheduleRow, 'revision'>): Promise<Plan> | null
}

/** After that the workflow may have been disabled, and the last run may have ended. */
const FRESH_MS = 1000

export function createBegun({ revision }: Pick<ScheduleRow, 'revision'>, planning: Promise<Plan>): Begun {
  let decidedAt = Infinity
  const note = () => {
    decidedAt = performance.now()
  }
  planning.then(note, note)
  return {
    planFor: (row) => (row.revision === revision && performance.now() - decidedAt <= FRESH_MS ? planning : null),
  }
}
