import { writeSync } from 'node:fs'
import type { FrameCodes, FrameName } from '@windlass/shared/wire/program.ts'

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
} satisfies FrameCodes

const FRAMES_FD = 3
const HEADER_BYTES = 13
const EMPTY = Buffer.alloc(0)

// Programs may put a fake clock in place of Date; the log wants the real one.
const now = Date.now

/** Writes one frame. The pipe blocks when it is full, so a program can never be faster than its log. */
export function sendFrame(name: FrameName, payload: string | Uint8Array = EMPTY): void {
  const frame = typeof payload === 'string' ? ofText(payload) : ofBytes(payload)
  frame.writeUInt8(CODE[name].charCodeAt(0), 0)
  frame.writeUInt32LE(frame.length - HEADER_BYTES, 1)
  frame.writeDoubleLE(now(), 5)
  writeAll(frame)
}

function ofText(text: string): Buffer {
  const frame = Buffer.allocUnsafe(HEADER_BYTES + Buffer.byteLength(text))
  frame.write(text, HEADER_BYTES)
  return frame
}

function ofBytes(bytes: Uint8Array): Buffer {
  const frame = Buffer.allocUnsafe(HEADER_BYTES + bytes.length)
  frame.set(bytes, HEADER_BYTES)
  return frame
}

let together: Buffer[] | undefined

/** Frames that are sent within reach the agent in one read, as long as they fit into the pipe. */
export function sendTogether(send: () => void): void {
  together = []
  try {
    send()
  } finally {
    const frames = together
    together = undefined
    writeAll(Buffer.concat(frames))
  }
}

function writeAll(frame: Buffer): void {
  if (together) return void together.push(frame)
  try {
    for (let sent = 0; sent < frame.length;) sent += writeSync(FRAMES_FD, frame, sent)
  } catch {
    // Nobody reads any more: the agent is gone, and without it this run belongs to somebody else.
    process.reallyExit(1)
  }
}
