import type { EnvironmentId, OrgId } from '@windlass/shared/ids.ts'

/** Whose variables and secrets: those of one environment, or with '' those of the org, which its environments inherit. */
export interface Level {
  orgId: OrgId
  environment: string
}

export interface EnvironmentRow {
  id: EnvironmentId
  name: string
  createdAt: Date
}

/** A variable or a secret, whose value only the run's own agent reads. */
export interface EntryRow {
  environment: string
  name: string
  /** Null: it is a secret. */
  value: string | null
  updatedAt: Date
  updatedBy: string
}

/** Where a secret stands. */
export interface Seat extends Level {
  name: string
}

export interface SealedRow extends Seat {
  sealed: string
}
