import type { Holding } from '../limits/bytes-in-flight.ts'

interface ValueSize {
  /** Of the body. */
  bytes: number
  /** Bytes of memory that its values take beside their texts. */
  besideTexts: number
}

/** Counts the bytes of a body, and bounds what is in memory of its values. */
export interface Room extends Omit<Holding, 'whole'> {
  /**
   * Waits until there is room for the values of a body; they hold it until `release`. Throws UNAVAILABLE when there is
   * none in time.
   */
  holdValues(size: ValueSize): Promise<void>
}
