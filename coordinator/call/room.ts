import type { Holding } from '../limits/bytes-in-flight.ts'

/** Counts the bytes of a body, and bounds what is in memory of its values. */
export interface Room extends Omit<Holding, 'whole'> {
  /** Waits until a body of so many bytes may become values. They keep their seat until `release`, or `leave`. */
  seat(bytes: number): Promise<void>
  /** The body has become values. Files leave their seat then. */
  read(bytes: number): void
  leave(): void
}
