import { Fault } from '@windlass/shared/errors.ts'

/** What is looked at of a workflow before a run of it starts. */
export interface Startable {
  slug: string
  /** Since when, and the id of who did it; null: it is enabled. */
  disabled: { at: Date; by: string } | null
}

/** Why no run of a workflow may start now. Undefined: one may. */
export function whyNotStart({ slug, disabled }: Startable): Fault | undefined {
  if (disabled === null) return undefined
  const { at, by } = disabled
  return new Fault(
    'WORKFLOW_DISABLED',
    { workflow: slug, disabledAt: at.getTime(), disabledBy: by },
    `The workflow \`${slug}\` was disabled by ${by} at ${at.toISOString()}; no run of it starts until it is enabled.`,
  )
}
