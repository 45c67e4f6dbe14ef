import type { FrameMark } from './held.ts'
import { crc32 } from 'node:zlib'
import type { Gap } from './gap.ts'

/**
 * A line of the spool: `<crc32 of the rest, 8 hex> <kind> <run> <epoch> …`. JSON text holds no raw line break, so a line
 * break ends a line, a crash in the middle of a write leaves a line that does not check, and a person can read the file.
 */
export type SpoolLine =
  /**
   * A placement is known here; `next` is the number of its next entry. Heads every file for each placement still held.
   * `unbegunIn`: the store in which its program had not begun by then; empty where that is not said, as by agents of
   * before.
   */
  | { kind: 'open'; run: string; epoch: number; next: number; isEnded: boolean; unbegunIn: string }
  /** Entries `first` to `last`; `json()` is the text of an `EntryBatch`, ready to be sent. */
  | { kind: 'batch'; run: string; epoch: number; first: number; last: number; isEnded: boolean; json(): string }
  /** Where the program stood at an entry. */
  | { kind: 'mark'; run: string; epoch: number; mark: FrameMark }
  /** So much of its log was left out after the entries that stand before. A batch that follows tells of it. */
  | { kind: 'gap'; run: string; epoch: number; events: number; bytes: number }
  /** Everything is acknowledged, or belongs to somebody else by now. */
  | { kind: 'forget'; run: string; epoch: number }

export function openLine(
  run: string,
  epoch: number,
  { next, isEnded = false, unbegunIn = '' }: { next: number; isEnded?: boolean; unbegunIn?: string },
): string {
  const head = `o ${run} ${epoch} ${next} ${Number(isEnded)}`
  // Agents of before read the first four of these.
  return line(unbegunIn === '' ? head : `${head} ${unbegunIn}`)
}

export function batchLine(
  run: string,
  epoch: number,
  range: { first: number; last: number; isEnded: boolean },
  json: string,
) {
  return line(`b ${run} ${epoch} ${range.first} ${range.last} ${Number(range.isEnded)} ${json}`)
}

export function markLine(run: string, epoch: number, { seq, frames, journal, isParked }: FrameMark): string {
  return line(`m ${run} ${epoch} ${seq} ${frames ?? -1} ${journal} ${Number(isParked)}`)
}

export function gapLine(run: string, epoch: number, { events, bytes }: Gap): string {
  return line(`g ${run} ${epoch} ${events} ${bytes}`)
}

export function forgetLine(run: string, epoch: number): string {
  return line(`f ${run} ${epoch}`)
}

function line(body: string): string {
  return `${crc32(body).toString(16).padStart(8, '0')} ${body}\n`
}

const CRC_CHARS = 9
/** Longer than any head: two ids and four numbers. */
const HEAD_BYTES = 256

/** Undefined for a line that was torn or damaged. `bytes` is without its line break. */
export function parseLine(bytes: Buffer): SpoolLine | undefined {
  const body = bytes.subarray(CRC_CHARS)
  if (bytes.toString('latin1', 0, CRC_CHARS - 1) !== crc32(body).toString(16).padStart(8, '0')) return undefined
  const [kind, run = '', epoch, ...numbers] = body.toString('latin1', 0, HEAD_BYTES).split(' ', 7)
  const [a = 0, b = 0, c = 0, d = 0] = numbers.map(Number)
  const [, , unbegunIn = ''] = numbers
  const placement = { run, epoch: Number(epoch) }
  if (kind === 'o') return { kind: 'open', ...placement, next: a, isEnded: b === 1, unbegunIn }
  if (kind === 'm')
    return { kind: 'mark', ...placement, mark: { seq: a, frames: b < 0 ? null : b, journal: c, isParked: d === 1 } }
  if (kind === 'f') return { kind: 'forget', ...placement }
  if (kind === 'g') return { kind: 'gap', ...placement, events: a, bytes: b }
  if (kind !== 'b') return undefined
  return { kind: 'batch', ...placement, first: a, last: b, isEnded: c === 1, json: () => jsonOf(body) }
}

/** What follows the sixth space. */
function jsonOf(body: Buffer): string {
  let at = -1
  for (let spaces = 0; spaces < 6; spaces++) at = body.indexOf(0x20, at + 1)
  return body.toString('utf8', at + 1)
}
