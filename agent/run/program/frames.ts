import type { RunErrorCode } from '@windlass/shared/errors.ts'
import type { Ending } from '@windlass/shared/model/ending.ts'
import type { FrameCodes, FrameName, ProgramMessage } from '@windlass/shared/wire/program.ts'

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
  let parts: Buffer[] = []
  let held = 0
  let wanted = HEADER_BYTES

  return (chunk) => {
    parts.push(chunk)
    held += chunk.length
    // A large frame comes in many pieces: they are joined once, when it is there.
    if (held < wanted) return { frames: [] }
    let rest = parts.length === 1 ? chunk : Buffer.concat(parts)
    const frames: Frame[] = []
    try {
      for (;;) {
        wanted = rest.length < HEADER_BYTES ? HEADER_BYTES : HEADER_BYTES + payloadBytes(rest, mostBytes())
        if (rest.length < wanted) break
        frames.push(readFrame(rest, wanted))
        rest = rest.subarray(wanted)
      }
    } catch (broken) {
      return { frames, broken }
    }
    parts = rest.length === 0 ? [] : [rest]
    held = rest.length
    return { frames }
  }
}

export function bytesOf(frames: readonly Frame[]): number {
  return frames.reduce((sum, { payload }) => sum + HEADER_BYTES + payload.length, 0)
}

function payloadBytes(buffer: Buffer, mostBytes: MostBytes): number {
  const name = nameOf(buffer)
  const bytes = buffer.readUInt32LE(1)
  const most = mostBytes[name]
  if (most === undefined) throw new BrokenFrame(`a ${name}, which it does not say at this time`)
  if (bytes > most) throw new BrokenFrame(`a ${name} of ${bytes} bytes, ${most} at most`)
  return bytes
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

export function endedByBrokenLine(error: unknown): Ending {
  const code: RunErrorCode = 'PROGRAM_LINE_BROKEN'
  const what = error instanceof Error ? error.message : String(error)
  const message = `The program wrote to descriptor 3, which belongs to the runtime: ${what}. Use stdout, stderr, log() or phase().`
  return { how: 'threw', error: { name: 'Error', code, message } }
}
