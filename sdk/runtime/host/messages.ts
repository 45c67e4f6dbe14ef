import { readSync } from 'node:fs'
import type { Socket } from 'node:net'
import type { ProgramMessage } from '@windlass/shared/wire/program.ts'

const MESSAGES_FD = 4
const LENGTH_BYTES = 4

let socket: Socket | undefined
let held: Buffer = Buffer.alloc(0)

/**
 * The next message, waiting for it without an event loop: nothing of a former run can happen meanwhile, and it costs no more
 * than a read. Undefined once `watchMessages` has taken over. Ends the process when the agent is gone.
 */
export function nextMessage(): ProgramMessage | undefined {
  if (socket) return undefined
  const length = readExactly(LENGTH_BYTES).readUInt32LE(0)
  return JSON.parse(readExactly(length).toString()) as ProgramMessage
}

function readExactly(bytes: number): Buffer {
  const buffer = Buffer.allocUnsafe(bytes)
  for (let got = 0; got < bytes;) {
    const read = readSync(MESSAGES_FD, buffer, got, bytes - got, null)
    if (read === 0) process.reallyExit(1)
    got += read
  }
  return buffer
}

/**
 * From now on messages come through the event loop, and the process ends at once when the agent goes. Loading `net` costs a
 * millisecond, so this happens for runs that last, or when the agent has something to say.
 */
export function watchMessages(onMessage: (message: ProgramMessage) => void): void {
  if (socket) return
  const net = process.getBuiltinModule('node:net')
  socket = new net.Socket({ fd: MESSAGES_FD, readable: true, writable: false })
  socket.on('data', (chunk: Buffer) => {
    held = held.length === 0 ? chunk : Buffer.concat([held, chunk])
    for (let message = takeMessage(); message; message = takeMessage()) onMessage(message)
  })
  const gone = () => process.reallyExit(1)
  socket.on('end', gone).on('error', gone)
  socket.unref()
}

/** Whether waiting for messages keeps the process alive: between runs it does, during a run it does not. */
export function holdOn(hold: boolean): void {
  if (hold) socket?.ref()
  else socket?.unref()
}

function takeMessage(): ProgramMessage | undefined {
  if (held.length < LENGTH_BYTES) return undefined
  const end = LENGTH_BYTES + held.readUInt32LE(0)
  if (held.length < end) return undefined
  const text = held.toString('utf8', LENGTH_BYTES, end)
  held = held.subarray(end)
  return JSON.parse(text) as ProgramMessage
}
