import { Fault } from '@windlass/shared/errors.ts'
import { nearest } from '@windlass/shared/did-you-mean.ts'
import { ALIASES } from './zone-aliases.ts'

let bySmallName: Map<string, string> | undefined

/** IANA's spelling of each zone and alias that is known here, by its lower-case form. */
function names(): Map<string, string> {
  return (bySmallName ??= new Map(
    [...Intl.supportedValuesOf('timeZone'), ...ALIASES].map((name) => [name.toLowerCase(), name]),
  ))
}

/** Whether this process has the rules of the zone. */
export function isKnownZone(zone: string): boolean {
  try {
    new Intl.DateTimeFormat('en', { timeZone: zone })
    return true
  } catch (error) {
    if (error instanceof RangeError) return false
    throw error
  }
}

/**
 * The zone in the spelling of IANA, and not what Intl makes of it: `europe/kyiv` is `Europe/Kyiv`, though Intl answers
 * `Europe/Kiev`. Throws VALIDATION_FAILED with the nearest name for what is none; offsets are none.
 */
export function checkedZone(given: string): string {
  const spelled = names().get(given.toLowerCase())
  if (spelled !== undefined && isKnownZone(spelled)) return spelled
  // A zone that is newer than our list of names.
  if (/^[A-Z][A-Za-z_]+\/[A-Z][A-Za-z_/-]+$/.test(given) && isKnownZone(given)) return given
  const near = nearestZone(given)
  const fix = isOffset(given)
    ? 'an offset does not follow the clocks of a place: name a zone, such as `Europe/Zurich` or `UTC`'
    : near === undefined
      ? 'name one as IANA does, such as `Europe/Zurich` or `UTC`'
      : `did you mean \`${near}\`?`
  throw new Fault(
    'VALIDATION_FAILED',
    { path: 'timezone', value: given, ...(near !== undefined && { nearest: near }) },
    `timezone: \`${given}\` is no time zone: ${fix}${fix.endsWith('?') ? '' : '.'}`,
  )
}

const isOffset = (text: string) => /^(utc|gmt)?\s*[+-]\s*\d{1,2}(:?\d\d)?$/i.test(text)

function nearestZone(given: string): string | undefined {
  if (isOffset(given) || given.trim() === '') return 'UTC'
  const all = [...names().values()]
  const wanted = given.trim().toLowerCase().replaceAll(' ', '_')
  // Most often only the place is written: `zurich`.
  const byCity = all.find((name) => name.toLowerCase().split('/').at(-1) === wanted)
  return names().get(wanted) ?? byCity ?? nearest(wanted, all)
}
