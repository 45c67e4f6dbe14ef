import { readSync } from 'node:fs'
import type { Socket } from 'node:net'
import type { ProgramMessage } from '@windlass/shared/wire/program.ts'
import { unrefOurs } from './unrefed.ts'

const FIRST_FD = 4
const LENGTH_BYTES = 4

let descriptor = FIRST_FD
let socket: Socket | undefined
let isHeld = false
let held: Buffer = Buffer.alloc(0)

/**
 * The next message, waiting for it without an event loop: nothing of a former run can happen meanwhile, and it costs no
 * more than a read. Undefined once `watchMessages` has taken over. Ends the process when the agent is gone.
 */
export function nextMessage(): ProgramMessage | undefined {
  return socket ? undefined : (readMessage(descriptor) ?? process.reallyExit(1))
}

/** One message, from wherever it comes; undefined when nobody is there. */
export function readMessage(fd: number): ProgramMessage | undefined {
  const length = readExactly(fd, LENGTH_BYTES)?.readUInt32LE(0)
  const text = length === undefined ? undefined : readExactly(fd, length)
  return text && (JSON.parse(text.toString()) as ProgramMessage)
}

function readExactly(fd: number, bytes: number): Buffer | undefined {
  const buffer = Buffer.allocUnsafe(bytes)
  for (let got = 0; got < bytes;) {
    const read = readSync(fd, buffer, got, bytes - got, null)
    if (read === 0) return undefined
    got += read
  }
  return buffer
}

/**
 * From now on messages come through the event loop, and the process ends at once when the agent goes. Loading `net`
 * costs a millisecond, so this happens for runs that last, or when the agent has something to say.
 */
export function watchMessages(onMessage: (message: ProgramMessage) => void, onGone: () => void): void {
  if (socket) return
  const net = process.getBuiltinModule('node:net')
  const own = new net.Socket({ fd: descriptor, readable: true, writable: false })
  socket = own
  own.on('data', (chunk: Buffer) => {
    held = held.length === 0 ? chunk : Buffer.concat([held, chunk])
    for (let message = takeMessage(); message; message = takeMessage()) onMessage(message)
  })
  // Once another line has taken its place, what becomes of this one is of no interest.
  const gone = () => socket === own && onGone()
  own.on('end', gone).on('error', gone)
  holdOn(isHeld)
}

/** From now on messages come from there. */
export function hearFrom(fd: number): void {
  socket?.destroy()
  socket = undefined
  held = Buffer.alloc(0)
  descriptor = fd
}

/** Whether waiting for messages keeps the process alive: between runs it does, during a run it does not. */
export function holdOn(hold: boolean): void {
  isHeld = hold
  if (hold) socket?.ref()
  else if (socket) unrefOurs(socket)
}

function takeMessage(): ProgramMessage | undefined {
  if (held.length < LENGTH_BYTES) return undefined
  const end = LENGTH_BYTES + held.readUInt32LE(0)
  if (held.length < end) return undefined
  const text = held.toString('utf8', LENGTH_BYTES, end)
  held = held.subarray(end)
  return JSON.parse(text) as ProgramMessage
}
