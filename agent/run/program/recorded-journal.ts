import type { EntryState } from '@windlass/shared/wire/journal.ts'
import { journalMessage } from './frames.ts'

/**
 * What is recorded of a run, on its way from the coordinator to a process. It may be 32 MiB, or six times as long where
 * JSON escapes each character: to parse it here would stop all other runs for seconds.
 */
export interface RecordedJournal {
  /** Messages to the process, of some records each. None any more when the program has begun. */
  messages: Buffer[]
  /** Numbers of the entries that have their result. */
  completed: number[]
}

export const NO_JOURNAL: RecordedJournal = { messages: [], completed: [] }

/** A holder keeps no more of it until the run ends than which entries have their result. */
export function letGo(journal: RecordedJournal): void {
  journal.messages.length = 0
}

/** A larger message holds one record. */
const MESSAGE_BYTES = 256 * 1024
/** Of a record, without its long strings. */
const FACTS_BYTES = 64 * 1024
/** Longer strings are results, or arguments. */
const LONG_BYTES = 256
const COMMA = Buffer.from(',')

const QUOTE = 0x22
const BACKSLASH = 0x5c
const SPACE = 0x20
const OPENS: readonly number[] = [0x5b, 0x7b]
const CLOSES: readonly number[] = [0x5d, 0x7d]

/** Cuts the JSON text of a list of records, as it comes, at their borders. */
export class JournalSplitter {
  readonly #messages: Buffer[] = []
  readonly #completed: number[] = []
  /** Of the message to come. */
  #parts: Buffer[] = []
  #partsBytes = 0
  /** 0: before the list or behind it; 1: in it; more: in a record. */
  #depth = 0
  #hasBegun = false
  #isInString = false
  #isEscaped = false
  /** The record without its long strings: these are empty there. */
  readonly #facts = Buffer.allocUnsafe(FACTS_BYTES)
  #factsBytes = 0
  #stringAt = 0

  push(bytes: Buffer): void {
    let from = 0
    for (let at = this.#behindLong(bytes, 0); at < bytes.length; at = this.#behindLong(bytes, at + 1)) {
      const byte = bytes[at]!
      const wasIn = this.#depth > 1
      if (this.#isInString) this.#inString(byte)
      else if (this.#step(byte) && this.#depth === 2 && !wasIn) from = at
      if (wasIn || this.#depth > 1) this.#note(byte)
      if (!wasIn || this.#depth > 1) continue
      this.#add(bytes.subarray(from, at + 1))
      this.#endRecord()
    }
    if (this.#depth > 1) this.#add(bytes.subarray(from))
  }

  /** Where it goes on: behind what there is of a long string, of which nearly all bytes are. */
  #behindLong(bytes: Buffer, from: number): number {
    if (!this.#isInString || this.#factsBytes - this.#stringAt <= LONG_BYTES) return from
    let isEscaped = this.#isEscaped
    let at = from
    for (; at < bytes.length; at++) {
      const byte = bytes[at]
      if (isEscaped) isEscaped = false
      else if (byte === BACKSLASH) isEscaped = true
      else if (byte === QUOTE) break
    }
    this.#isEscaped = isEscaped
    return at
  }

  end(): RecordedJournal {
    if (this.#depth < 0) throw new UnreadableJournal()
    if (!this.#hasBegun || this.#depth > 0) throw new Error('the journal has ended in the middle')
    this.#endMessage()
    return { messages: this.#messages, completed: this.#completed }
  }

  /** Outside of strings. True: something nests deeper from here on. */
  #step(byte: number): boolean {
    if (byte === QUOTE) {
      this.#isInString = true
      this.#stringAt = this.#factsBytes
    } else if (OPENS.includes(byte)) {
      if (this.#depth === 0 && (this.#hasBegun || byte !== OPENS[0])) throw new UnreadableJournal()
      this.#hasBegun = true
      this.#depth += 1
      if (this.#depth === 2 && this.#parts.length > 0) this.#add(COMMA)
      return true
    } else if (CLOSES.includes(byte)) {
      this.#depth -= 1
      return false
    }
    if (this.#depth < 2 && byte > SPACE && byte !== COMMA[0]) throw new UnreadableJournal()
    return false
  }

  #inString(byte: number): void {
    if (this.#isEscaped) this.#isEscaped = false
    else if (byte === BACKSLASH) this.#isEscaped = true
    else if (byte === QUOTE) this.#isInString = false
  }

  #note(byte: number): void {
    const bytes = this.#factsBytes - this.#stringAt
    if (this.#isInString && bytes > LONG_BYTES) return
    // It has ended just now, and was long.
    if (byte === QUOTE && !this.#isInString && bytes > LONG_BYTES) this.#factsBytes = this.#stringAt + 1
    if (this.#factsBytes === FACTS_BYTES) throw new UnreadableJournal()
    this.#facts[this.#factsBytes++] = byte
  }

  #add(part: Buffer): void {
    this.#parts.push(part)
    this.#partsBytes += part.length
  }

  #endRecord(): void {
    const { n, state } = JSON.parse(this.#facts.toString('utf8', 0, this.#factsBytes)) as {
      n: number
      state: EntryState
    }
    if (state !== 'open') this.#completed.push(n)
    this.#factsBytes = this.#stringAt = 0
    if (this.#partsBytes >= MESSAGE_BYTES) this.#endMessage()
  }

  #endMessage(): void {
    if (this.#parts.length === 0) return
    this.#messages.push(journalMessage(this.#parts))
    this.#parts = []
    this.#partsBytes = 0
  }
}

/** Asked for again it is the same. */
export class UnreadableJournal extends Error {
  constructor() {
    super('the journal that the coordinator gave is no list of records')
    this.name = 'UnreadableJournal'
  }
}
