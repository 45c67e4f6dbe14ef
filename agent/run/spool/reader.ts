import type { Log } from '@windlass/shared/log.ts'
import { isBefore, type Position } from './position.ts'
import type { Chunk, Segments } from './segments.ts'
import { codeOf, unreadableText, type Unread } from './unread.ts'

interface ReaderOptions {
  segments: Segments
  log: Log
  /** For how long what may be lost is tried again; 10 s by default, within which most disks of a network are back. */
  unreadableMs?: number
}

/** The file is gone, or its part of the disk. All other errors wait for somebody who mends them. */
const LOST_CODES = new Set(['ENOENT', 'EIO'])
const UNREADABLE_MS = 10_000

/** A file of which a part cannot be read, since when, and how. */
interface Failure extends Unread {
  /** The place that was tried last. */
  at: Position
  sinceMs: number
  /** What was written by then ends here. */
  next: Position
}

/**
 * Reads the files of the spool while it is in use. A place that cannot be read is tried again; what is lost there
 * counts as damage after a while, or what stands in it and behind it would never be told, nor be missed.
 */
export class SpoolReader {
  readonly #options: ReaderOptions
  readonly #damaged = new Set<number>()
  /** Files of which a part could not be read for long enough. */
  readonly #givenUp = new Set<number>()
  /** By the numbers of the files. */
  readonly #failures = new Map<number, Failure>()

  constructor(options: ReaderOptions) {
    this.#options = options
  }

  oldest(): Position {
    return this.#options.segments.oldest()
  }

  end(): Position {
    return this.#options.segments.end()
  }

  /** Lines from a position on; none and the same position, where it could not be read. */
  async read(from: Position): Promise<Chunk> {
    const chunk = await this.#options.segments.read(from)
    if (!chunk.unread) {
      this.#passed(from)
      if (chunk.damagedBytes > 0) this.#isDamaged(from.segment, chunk.damagedBytes)
      return chunk
    }
    const failure = this.#failed(from, chunk.next, chunk.unread)
    if (!this.#isLost(failure)) return { lines: [], next: from, damagedBytes: 0 }
    this.#giveUp(failure)
    return { lines: [], next: failure.next, damagedBytes: failure.next.offset - from.offset }
  }

  /** Why it cannot be read at present, as of this moment. */
  async trouble(): Promise<string | undefined> {
    for (const failure of this.#failures.values()) await this.#lookAgain(failure)
    const [first] = this.#failures.values()
    return first && unreadableText(first)
  }

  async #lookAgain(failure: Failure): Promise<void> {
    const { at } = failure
    const { unread } = await this.#options.segments.read(at)
    // Meanwhile it may have been read, or given up.
    if (this.#failures.get(at.segment) !== failure) return
    if (!unread) return this.#passed(at)
    Object.assign(failure, unread)
    // Where nobody asks for it any more, it must not keep this agent from work.
    if (this.#isLost(failure)) this.#giveUp(failure)
  }

  #failed(at: Position, next: Position, unread: Unread): Failure {
    const known = this.#failures.get(at.segment)
    if (known) return Object.assign(known, { at, ...unread })
    const failure = { at, next, sinceMs: performance.now(), ...unread }
    this.#failures.set(at.segment, failure)
    this.#avoid(at.segment)
    if (!this.#damaged.has(at.segment)) {
      const advice = unreadableText(failure)
      this.#options.log.error('spool.unreadable', { file: unread.file, error: unread.error, advice })
    }
    return failure
  }

  #isLost({ at, error, sinceMs }: Failure): boolean {
    if (!LOST_CODES.has(codeOf(error))) return false
    const { unreadableMs = UNREADABLE_MS } = this.#options
    return this.#givenUp.has(at.segment) || performance.now() - sinceMs >= unreadableMs
  }

  #giveUp({ at, next }: Failure): void {
    this.#failures.delete(at.segment)
    this.#givenUp.add(at.segment)
    this.#isDamaged(at.segment, next.offset - at.offset)
  }

  /** It was read there, or further on in the same file. */
  #passed(at: Position): void {
    const failure = this.#failures.get(at.segment)
    if (!failure || isBefore(at, failure.at)) return
    this.#options.log('spool.readable', { file: failure.file })
    this.#failures.delete(at.segment)
  }

  #isDamaged(segment: number, bytes: number): void {
    this.#avoid(segment)
    if (!this.#damaged.has(segment)) this.#options.log.warn('spool.torn', { segment, bytes })
    this.#damaged.add(segment)
  }

  /** What is written from now on is to stand where it can be read. */
  #avoid(segment: number): void {
    if (segment === this.end().segment) this.#options.segments.turnOver()
  }
}
