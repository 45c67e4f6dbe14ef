import type { Log } from '@windlass/shared/log.ts'
import type { Entry, Placement } from '@windlass/shared/wire/agent.ts'
import type { FrameMark, Held, Written } from './held.ts'
import type { SpoolReader } from './reader.ts'
import type { SEGMENT_SIZES } from './segments.ts'
import type { ThrottleOptions } from './throttle.ts'

export interface SpoolOptions extends Omit<ThrottleOptions, 'total'> {
  folder: string
  /** How far this machine's clock is behind the coordinator's, by which the log of a run is told. */
  offsetMs?: () => number
  /** For how long a file is tried again that is gone, or whose part of the disk is. */
  unreadableMs?: number
  /** Of its files, and of what is read of them at once. */
  sizes?: typeof SEGMENT_SIZES
  log: Log
}

/** The write-ahead log of everything that runs report: on disk before it is sent, kept until it is acknowledged. */
export interface Spool {
  /** Written before the offers are accepted: an agent that dies afterwards knows at its next start what it took. */
  open(placements: readonly Placement[]): void
  /**
   * Its program may begin from now on: on disk when this returns, and what has no such mark has not begun. Throws when
   * the disk refuses it.
   */
  begin(run: string, epoch: number): void
  /** A promise when its program should be held back until it settles. Entries of unknown placements are dropped. */
  append(run: string, epoch: number, entries: readonly Entry[]): Promise<void> | undefined
  /**
   * Where the program stands after what was appended last. Written with the next entries; whoever takes the program
   * back after a kill of this agent hears it from there.
   */
  mark(run: string, epoch: number, mark: Omit<FrameMark, 'seq'>): void
  ack(run: string, epoch: number, seq: number): void
  /** Not all of the `seq` entries that the coordinator has are ours: nothing but an end goes on from there. */
  setBack(run: string, epoch: number, seq: number): void
  forget(run: string, epoch: number): void
  find(run: string, epoch: number): Held | undefined
  /** Every placement with something unacknowledged, or in execution. */
  held(): Held[]
  holds(): Placement[]
  /** Told about each write, in order. */
  onWritten(listener: (written: Written[]) => void): void
  readonly reader: Pick<SpoolReader, 'read' | 'oldest' | 'end' | 'trouble'>
  stats(): { placements: number; unacknowledged: number }
  /** Why it cannot be written at present. */
  trouble(): string | undefined
  flush(): void
  close(): void
}
