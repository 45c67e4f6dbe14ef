import { StringDecoder } from 'node:string_decoder'
import { EVENT_DATA_BYTES } from '@windlass/shared/model/event.ts'
import type { Redactor } from '../redact/redactor.ts'

const EMPTY = Buffer.alloc(0)
const LINE_BREAK = 10
/** `{"text":""}` takes its part of an event. */
const AROUND_LINE_BYTES = 16

export interface LineSplitter {
  /** The lines that `chunk` completes. */
  push(chunk: Buffer): string[]
  /** What is left at the end, without a line break. */
  flush(): string[]
  /** Nothing is held back: what comes next is the beginning of a line. */
  isEmpty(): boolean
  /** What came last may be the beginning of a secret: its rest alone would not be found. */
  isInSecret(): boolean
  /** What comes from now on is of a process with these secrets. */
  hideWith(redactor: Redactor | undefined): void
  /** The process is gone: nothing is taken until `hideWith`, and what finds its secrets is let go. */
  leave(): void
  /** How much is held back, in about bytes. */
  heldBytes(): number
}

/**
 * Bytes into lines: secrets go first, so that no cut lets half of one through; characters stay whole across chunks, and a line
 * that is too long for one event becomes several.
 */
export function createLineSplitter(redactor?: Redactor, eventBytes = EVENT_DATA_BYTES): LineSplitter {
  const decoder = new StringDecoder('utf8')
  let hiding = redactor?.stream()
  /** What an earlier process may have begun of a secret. */
  let carried: Buffer = EMPTY
  let open = ''
  /** The last byte was no line break: some of a character may be in the decoder. */
  let isInside = false
  let isLeft = false

  function withoutSecrets(chunk: Buffer, isLast = false): Buffer {
    const bytes = carried.length === 0 ? chunk : Buffer.concat([carried, chunk])
    carried = EMPTY
    if (!hiding) return bytes
    const given = hiding.push(bytes)
    return isLast ? Buffer.concat([given, hiding.end()]) : given
  }

  const complete = (text: string): string[] => {
    const lines = text.split('\n')
    lines[0] = open + (lines[0] ?? '')
    open = lines.pop() ?? ''
    return lines.flatMap((line) => fitting(withoutReturn(line), eventBytes))
  }

  return {
    push: (chunk) => {
      if (isLeft) return []
      const bytes = withoutSecrets(chunk)
      if (bytes.length > 0) isInside = bytes.at(-1) !== LINE_BREAK
      const lines = complete(decoder.write(bytes))
      // A program that never breaks its line must not make us hold all of it.
      if (open.length <= eventBytes - AROUND_LINE_BYTES) return lines
      const pieces = fitting(open, eventBytes)
      open = pieces.pop() ?? ''
      return [...lines, ...pieces]
    },
    flush: () => {
      const lines = complete(decoder.write(withoutSecrets(EMPTY, true)) + decoder.end())
      const last = open
      open = ''
      isInside = false
      return last === '' ? lines : [...lines, ...fitting(last, eventBytes)]
    },
    isEmpty: () => open === '' && !isInside && carried.length === 0 && !hiding?.heldBytes,
    isInSecret: () => carried.length > 0 || Boolean(hiding?.heldBytes),
    hideWith: (next) => {
      carried = withoutSecrets(EMPTY, true)
      hiding = next?.stream()
      isLeft = false
    },
    leave: () => {
      isLeft = true
      carried = Buffer.from(withoutSecrets(EMPTY, true))
      hiding = undefined
      open = copied(open)
    },
    heldBytes: () => 2 * open.length + carried.length + (hiding?.heldBytes ?? 0),
  }
}

/** The end of a text keeps all of it in memory. */
const copied = (text: string) => Buffer.from(text, 'utf16le').toString('utf16le')

const withoutReturn = (line: string) => (line.endsWith('\r') ? line.slice(0, -1) : line)

/** JSON makes up to six bytes of a character; most lines are far too short for that to matter. */
export function fitting(line: string, eventBytes: number): string[] {
  const lineBytes = eventBytes - AROUND_LINE_BYTES
  if (line.length * 6 <= lineBytes) return [line]
  const pieces: string[] = []
  for (let from = 0; from < line.length;) {
    const to = cut(line, from, lineBytes)
    pieces.push(line.slice(from, to))
    from = to
  }
  return pieces
}

function cut(line: string, from: number, lineBytes: number): number {
  let length = Math.min(lineBytes, line.length - from)
  while (length > 1 && Buffer.byteLength(JSON.stringify(line.slice(from, from + length))) - 2 > lineBytes) length >>= 1
  const to = from + length
  // Between the halves of one character is no place to cut.
  const splits = to < line.length && (line.charCodeAt(to - 1) & 0xfc00) === 0xd800
  return splits ? to - 1 : to
}
