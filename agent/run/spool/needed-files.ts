import type { Segments } from './segments.ts'

/** How many placements still need each file of the spool. A file that nobody needs is removed, the oldest first. */
export class NeededFiles {
  readonly #segments: Pick<Segments, 'oldest' | 'end' | 'dropBefore'>
  readonly #counts = new Map<number, number>()

  constructor(segments: Pick<Segments, 'oldest' | 'end' | 'dropBefore'>) {
    this.#segments = segments
  }

  /** One placement more needs it. */
  need(segment: number): void {
    this.#counts.set(segment, (this.#counts.get(segment) ?? 0) + 1)
  }

  /** Each of these is needed by one placement less. */
  free(freed: readonly number[]): void {
    for (const segment of freed) this.#counts.set(segment, (this.#counts.get(segment) ?? 1) - 1)
    if (freed.length > 0 && this.#segments.oldest().segment < this.#segments.end().segment) this.#sweep()
  }

  #sweep(): void {
    const end = this.#segments.end().segment
    let oldest = this.#segments.oldest().segment
    // In order only: a later file says which placements of an earlier one are over.
    while (oldest < end && (this.#counts.get(oldest) ?? 0) === 0) this.#counts.delete(oldest++)
    this.#segments.dropBefore(oldest)
  }
}
