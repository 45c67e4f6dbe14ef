import type { OrgId } from '@windlass/shared/ids.ts'
import type { Holding, Known } from '../limits/bytes-in-flight.ts'

interface ValueSize {
  /** Of the body. */
  bytes: number
  /** Bytes of memory that its values take beside their texts. */
  besideTexts: number
}

/** Counts the bytes of a body, and bounds what is in memory of its values. */
export interface Room extends Omit<Holding, 'whole' | keyof Known> {
  /** The org whose turns the reading of a large body takes. */
  orgId: OrgId
  /** All of it has come: it holds its bytes until `release`, also when its client leaves. */
  whole(this: void): void
  /**
   * Waits until there is room for the values of a body; they hold it until `release`. Throws UNAVAILABLE when there is
   * none in time, and ClientGone as soon as the client leaves.
   */
  holdValues(size: ValueSize): Promise<void>
  /**
   * The same for a small body, whose memory is asked for where there is room for its text. Undefined: at once. Throws
   * RATE_LIMITED when too much of its org waits.
   */
  holdSmall(bytes: number, memory: () => number): Promise<void> | undefined
}
