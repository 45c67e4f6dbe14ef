import type { Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'
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
const RETRY_MS = 500

/** The first place that could not be read, since when, and how. */
interface Failure extends Unread {
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
  #failure: Failure | undefined

  constructor(options: ReaderOptions) {
    this.#options = options
  }

  oldest(): Position {
    return this.#options.segments.oldest()
  }

  end(): Position {
    return this.#options.segments.end()
  }

  /** Lines from a position on; after some time none and the same position, where it could not be read. */
  async read(from: Position): Promise<Chunk> {
    const chunk = await this.#options.segments.read(from)
    if (!chunk.unread) {
      this.#passed(from)
      if (chunk.damagedBytes > 0) this.#isDamaged(from.segment, chunk.damagedBytes)
      return chunk
    }
    const failure = this.#failed(from, chunk.next, chunk.unread)
    if (!this.#isLost(failure)) {
      await pause(RETRY_MS)
      return { lines: [], next: from, damagedBytes: 0 }
    }
    this.#giveUp(failure)
    return { lines: [], next: failure.next, damagedBytes: failure.next.offset - from.offset }
  }

  /** Why it cannot be read at present, as of this moment. */
  async trouble(): Promise<string | undefined> {
    const failure = this.#failure
    if (!failure) return undefined
    const { unread } = await this.#options.segments.read(failure.at)
    // Meanwhile it may have been read, or given up.
    if (this.#failure === failure) {
      if (!unread) this.#passed(failure.at)
      else Object.assign(failure, unread)
      // Where nobody asks for it any more, it must not keep this agent from work.
      if (unread && this.#isLost(failure)) this.#giveUp(failure)
    }
    return this.#failure && unreadableText(this.#failure)
  }

  #failed(at: Position, next: Position, unread: Unread): Failure {
    if (this.#failure && !isBefore(at, this.#failure.at) && !isBefore(this.#failure.at, at))
      return Object.assign(this.#failure, unread)
    this.#failure = { at, next, sinceMs: performance.now(), ...unread }
    this.#avoid(at.segment)
    if (!this.#damaged.has(at.segment)) {
      const advice = unreadableText(this.#failure)
      this.#options.log.error('spool.unreadable', { file: unread.file, error: unread.error, advice })
    }
    return this.#failure
  }

  #isLost({ at, error, sinceMs }: Failure): boolean {
    if (!LOST_CODES.has(codeOf(error))) return false
    const { unreadableMs = UNREADABLE_MS } = this.#options
    return this.#givenUp.has(at.segment) || performance.now() - sinceMs >= unreadableMs
  }

  #giveUp({ at, next }: Failure): void {
    this.#failure = undefined
    this.#givenUp.add(at.segment)
    this.#isDamaged(at.segment, next.offset - at.offset)
  }

  /** It was read there, or further on in the same file. */
  #passed(at: Position): void {
    if (this.#failure?.at.segment !== at.segment || isBefore(at, this.#failure.at)) return
    this.#options.log('spool.readable', { file: this.#failure.file })
    this.#failure = undefined
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
