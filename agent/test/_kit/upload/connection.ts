import assert from 'node:assert/strict'
import type { EntryBatch } from '@windlass/shared/wire/agent.ts'
import type { Held } from '../../../run/spool/held.ts'
import type { FakeDatabase } from './database.ts'
import type { Kind } from './kinds.ts'

interface Frame {
  text: string
  left: () => void
}

/** Frames of entries from memory are cut so. */
const FRAME_CHARS = 512 * 1024

/** The connection of the moment: what was sent, and has not arrived. */
export class Connection {
  readonly #kind: Kind
  readonly #db: FakeDatabase
  #count = 0
  #frames: Frame[] = []
  #longestBatch = 0
  isDialled = false
  isWelcome = false
  /** What was under way then is sent once more. */
  isAskedAgain = false

  constructor(kind: Kind, db: FakeDatabase) {
    this.#kind = kind
    this.#db = db
  }

  open(holds: Parameters<FakeDatabase['hello']>[1]): void {
    this.isDialled = true
    this.isAskedAgain = false
    this.#db.hello((this.#count += 1), holds)
  }

  /** So many frames arrive yet. */
  cut(arriving: number): void {
    this.isDialled = this.isWelcome = false
    for (const { text } of this.#frames.slice(0, arriving)) this.#db.take(this.#count, text)
    for (const frame of this.#frames.splice(0)) frame.left()
    this.#db.cut()
  }

  /** A batch may have so many characters. */
  expect(chars: number): void {
    this.#longestBatch = Math.max(this.#longestBatch, chars)
  }

  /** Resolves when the frame has left. */
  send(text: string): Promise<void> {
    const { promise, resolve } = Promise.withResolvers<void>()
    this.#frames.push({ text, left: resolve })
    const chars = this.#frames.reduce((sum, frame) => sum + frame.text.length, this.#db.waiting().chars)
    const { windowChars, chunkBytes, frameChars } = this.#kind
    const frame = Math.min(frameChars, FRAME_CHARS) + this.#longestBatch
    // Of four windows all placements together may have some lines; beyond that each goes by what is sent at once.
    const most = 4 * windowChars + frame + Math.max(frame, chunkBytes, 4 * this.#longestBatch)
    if (!this.isAskedAgain) assert.ok(chars <= most, `${chars} characters are under way, of ${most}`)
    return promise
  }

  /** False when nothing is on its way. */
  arrive(): boolean {
    const frame = this.#frames.shift()
    frame?.left()
    if (frame) this.#db.take(this.#count, frame.text)
    return frame !== undefined
  }

  get isSilent(): boolean {
    return this.#db.isSilent && this.#frames.length === 0
  }

  isSilentOn(run: string): boolean {
    return this.#db.isSilentOn(run) && !this.#frames.some(({ text }) => text.includes(`"${run}"`))
  }

  /** The entry was sent, and is not committed. */
  brings({ run, epoch }: Held, entry: number): boolean {
    const batchesOf = ({ text }: Frame) => (JSON.parse(text) as { batches: EntryBatch[] }).batches
    const batches = [...this.#frames.flatMap(batchesOf), ...this.#db.waiting().batches]
    const own = batches.filter((batch) => batch.run === run && batch.epoch === epoch)
    return own.some(({ first, entries }) => first <= entry && entry < first + entries.length)
  }
}
