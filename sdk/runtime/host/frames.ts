import { closeSync, writeSync } from 'node:fs'
import type { FrameCodes, FrameName } from '@windlass/shared/wire/program.ts'
import { keepRecentFrames } from './recent-frames.ts'

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

const FRAMES_FD = 3
const HEADER_BYTES = 13
const EMPTY = Buffer.alloc(0)

// Programs may put a fake clock in place of Date; the log wants the real one.
const now = Date.now

export const recent = keepRecentFrames()
let descriptor = FRAMES_FD

/** Writes one frame. The pipe blocks when it is full, so a program can never be faster than its log. */
export function sendFrame(name: FrameName, payload: string | Uint8Array = EMPTY): void {
  const frame = encodeFrame(name, payload)
  if (name === 'begun') recent.begin()
  recent.add(frame)
  if (together) together.push(frame)
  else writeOrRejoin(frame)
}

export function encodeFrame(name: FrameName, payload: string | Uint8Array): Buffer {
  const frame = typeof payload === 'string' ? ofText(payload) : ofBytes(payload)
  frame.writeUInt8(CODE[name].charCodeAt(0), 0)
  frame.writeUInt32LE(frame.length - HEADER_BYTES, 1)
  frame.writeDoubleLE(now(), 5)
  return frame
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
  if (together) return send()
  together = []
  try {
    send()
  } finally {
    const frames = together
    together = undefined
    writeOrRejoin(Buffer.concat(frames))
  }
}

let whenGone: () => void = () => process.reallyExit(1)

/**
 * What to do when nobody reads any more; it comes back only when everything that was sent has been read by somebody
 * else.
 */
export function onAgentGone(rejoin: () => void): void {
  whenGone = rejoin
}

function writeOrRejoin(bytes: Buffer): void {
  try {
    writeAll(descriptor, bytes)
  } catch {
    whenGone()
  }
}

export function writeAll(fd: number, bytes: Buffer): void {
  for (let sent = 0; sent < bytes.length;) sent += writeSync(fd, bytes, sent)
}

/** From now on frames go there. */
export function sendTo(fd: number): void {
  const former = descriptor
  descriptor = fd
  closeSync(former)
}
