import type { RunErrorCode } from '@windlass/shared/errors.ts'
import type { Ending } from '@windlass/shared/model/ending.ts'
import type { FrameCodes, FrameName, ProgramMessage } from '@windlass/shared/wire/program.ts'
import { HeldFile, HeldPipe } from './held-pipe.ts'

const CODE = {
  ready: 'r',
  begun: 'b',
  out: 'o',
  err: 'e',
  phase: 'p',
  log: 'l',
  children: 'c',
  returned: 'R',
  threw: 'T',
  idle: 'i',
  journal: 'j',
  park: 'k',
  live: 'L',
  blocked: 'B',
  rejoin: 'J',
} satisfies FrameCodes

const NAMES = new Map(Object.entries(CODE).map(([name, code]) => [code.charCodeAt(0), name as FrameName]))
const HEADER_BYTES = 13
const LEAST_HELD_BYTES = 4 * 1024
const NOTHING = Buffer.alloc(0)

const JOURNAL_HEAD = Buffer.from(`{"t":"${'journal' satisfies ProgramMessage['t']}","records":[`)
const JOURNAL_TAIL = Buffer.from(']}')

export interface Frame {
  name: FrameName
  at: number
  payload: Buffer
}

/** The program wrote something onto its line that no runtime of ours writes. Programs can: it is their process. */
export class BrokenFrame extends Error {
  override readonly name = 'BrokenFrame'
}

/** What a frame may have, by its kind. None of another kind is taken. */
export type MostBytes = Readonly<Partial<Record<FrameName, number>>>

export interface FramesRead {
  frames: Frame[]
  /** What follows them is no frame, or none that is taken: nothing more can be read. */
  broken?: unknown
}

/** Cuts what arrives into frames. At most one frame is held, and none larger than `mostBytes` has for its kind. */
export function createFrameReader(mostBytes: () => MostBytes): (chunk: Buffer) => FramesRead {
  /** Of a frame that has not come whole: its bytes, and room for more up to its size. */
  let held = NOTHING
  let heldBytes = 0
  let wanted = HEADER_BYTES

  /** Copied, as what a read brings is an object of its own: of single bytes these are a hundred times as large. */
  function hold(bytes: Buffer): void {
    const size = heldBytes + bytes.length
    if (size > held.length) {
      const larger = Buffer.allocUnsafe(Math.min(wanted, Math.max(size, 2 * held.length, LEAST_HELD_BYTES)))
      held.copy(larger, 0, 0, heldBytes)
      held = larger
    }
    bytes.copy(held, heldBytes)
    heldBytes = size
  }

  function cut(chunk: Buffer, frames: Frame[]): void {
    for (let rest = chunk; ;) {
      if (heldBytes === 0) wanted = bytesWanted(rest, mostBytes())
      if (heldBytes === 0 && rest.length >= wanted) {
        frames.push(readFrame(rest, wanted))
        rest = rest.subarray(wanted)
        continue
      }
      if (rest.length === 0) return
      const more = rest.subarray(0, wanted - heldBytes)
      hold(more)
      rest = rest.subarray(more.length)
      if (heldBytes === HEADER_BYTES) wanted = bytesWanted(held, mostBytes())
      if (heldBytes < wanted) continue
      frames.push(readFrame(held, wanted))
      held = NOTHING
      heldBytes = 0
    }
  }

  return (chunk) => {
    const frames: Frame[] = []
    try {
      cut(chunk, frames)
      return { frames }
    } catch (broken) {
      return { frames, broken }
    }
  }
}

export function bytesOf(frames: readonly Frame[]): number {
  return frames.reduce((sum, { payload }) => sum + HEADER_BYTES + payload.length, 0)
}

/** Of the frame that begins there; of its header, as long as that is not whole. */
function bytesWanted(buffer: Buffer, mostBytes: MostBytes): number {
  if (buffer.length < HEADER_BYTES) return HEADER_BYTES
  const name = nameOf(buffer)
  const bytes = buffer.readUInt32LE(1)
  const most = mostBytes[name]
  if (most === undefined) throw new BrokenFrame(`a ${name}, which it does not say at this time`)
  if (bytes > most) throw new BrokenFrame(`a ${name} of ${bytes} bytes, ${most} at most`)
  return HEADER_BYTES + bytes
}

function readFrame(buffer: Buffer, end: number): Frame {
  return { name: nameOf(buffer), at: buffer.readDoubleLE(5), payload: buffer.subarray(HEADER_BYTES, end) }
}

function nameOf(buffer: Buffer): FrameName {
  const name = NAMES.get(buffer.readUInt8(0))
  if (!name) throw new BrokenFrame(`an unknown frame code ${buffer.readUInt8(0)}`)
  return name
}

export function encodeMessage(message: ProgramMessage): Buffer {
  const text = JSON.stringify(message)
  const bytes = Buffer.byteLength(text)
  const buffer = Buffer.allocUnsafe(4 + bytes)
  buffer.writeUInt32LE(bytes, 0)
  buffer.write(text, 4)
  return buffer
}

/** Kinds of which the newest says all. They come for as long as a run lasts, whatever is read of them. */
const NEWEST_ONLY: readonly ProgramMessage['t'][] = ['kept', 'token']

/** Whether those of its kind before it say nothing any more. */
export const saysAll = ({ t }: ProgramMessage): boolean => NEWEST_ONLY.includes(t)

/** A `JournalMessage` of the JSON of its records, with commas between. */
export function journalMessage(records: readonly Buffer[]): Buffer {
  const message = Buffer.concat([Buffer.alloc(4), JOURNAL_HEAD, ...records, JOURNAL_TAIL])
  message.writeUInt32LE(message.length - 4, 0)
  return message
}

export function endedByBrokenLine(error: unknown): Ending {
  const code: RunErrorCode = 'PROGRAM_LINE_BROKEN'
  const what = error instanceof Error ? error.message : String(error)
  const written = `The program wrote to descriptor 3, which belongs to the runtime: ${what}. Use stdout, stderr, log() or phase().`
  const message = error instanceof HeldPipe || error instanceof HeldFile ? what : written
  return { how: 'threw', error: { name: 'Error', code, message } }
}
