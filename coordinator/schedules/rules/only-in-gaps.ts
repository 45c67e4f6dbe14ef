import { Fault } from '@windlass/shared/errors.ts'
import { nextTick } from './ticks.ts'
import { isKnownZone } from './zones.ts'

/** Throws VALIDATION_FAILED for times that the clocks of the zone never show, as they are put forward over them. */
export function refuseOnlyInGaps({ cron, timezone }: { cron: string; timezone: string }, now: number): void {
  if (!isKnownZone(timezone) || nextTick({ kind: 'cron', cron, timezone }, now) !== null) return
  throw new Fault(
    'VALIDATION_FAILED',
    { path: 'cron', value: cron },
    `cron: \`${cron}\` names only times that the clocks of ${timezone} leave out, within the next eight years: ` +
      'name another hour, or fixed times, without `*` and `/`, which come behind what is left out.',
  )
}
