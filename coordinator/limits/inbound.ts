import { type BytesInFlight, createBytesInFlight } from './bytes-in-flight.ts'
import { createPace, type Pace } from '../pace.ts'
import { createPerMinute, type PerMinute } from './per-minute.ts'
import { createSourceGate, type SourceGate, type SourceOwners } from './source-gate.ts'
import { createStrangers } from './strangers.ts'

const MIB = 1024 * 1024
/** What is small is most of what comes in. Beyond the limits a thousand and more have room for a moment. */
const SMALL = { org: 8 * MIB, all: 32 * MIB }

/** What deliveries may take up before and after it is known whose they are. */
export interface InboundLimits {
  /** Of bodies: for each address of senders until they are verified, then for their org, and for all. */
  deliveryBodies: BytesInFlight
  /** Of deliveries that were not verified, by address. */
  unverified: PerMinute
  /** Of the record of those that were too many, by source. */
  tooManyNoted: PerMinute
  sourceGate: SourceGate
  /** Of comparing deliveries with filters. */
  matching: Pace
}

interface Settings {
  maxDeliveryBytes: number
  limitUnverifiedPerMin: number
  limitRefusedPerMin: number
}

export function openInbound(settings: Settings, owners: SourceOwners): InboundLimits {
  const { maxDeliveryBytes, limitUnverifiedPerMin, limitRefusedPerMin } = settings
  // A provider sends from few addresses, and several large ones at once: an org has as much of them.
  const limits = { org: 3 * maxDeliveryBytes, all: Math.max(192 * MIB, 4 * maxDeliveryBytes) }
  return {
    deliveryBodies: createBytesInFlight(limits, { what: 'Deliveries', scope: 'address', small: SMALL }),
    unverified: createPerMinute(limitUnverifiedPerMin || Number.POSITIVE_INFINITY),
    tooManyNoted: createPerMinute(1),
    sourceGate: createSourceGate(createStrangers(limitRefusedPerMin, { what: 'addresses of webhooks' }), owners),
    matching: createPace(),
  }
}
