import type { Writable } from 'node:stream'
import type { ProgramMessage } from '@windlass/shared/wire/program.ts'
import { encodeMessage, saysAll } from '../program/frames.ts'

/** What an agent tells a process. For one that reads nothing little of it piles up. */
export interface MessageLine {
  send(message: ProgramMessage): void
  /** One that is encoded already. Resolves when most of it was read, or nobody will read it any more. */
  sendBytes(message: Buffer): Promise<void>
  /** Of what it was sent. */
  unreadBytes(): number
}

/** While its pipe is full, the newest of what says all waits here, and goes ahead of all that is said later. */
export function openMessageLine(pipe: Writable): MessageLine {
  const waiting = new Map<ProgramMessage['t'], ProgramMessage>()

  function write(bytes: Buffer, onRead = () => {}): void {
    pipe.write(bytes, () => {
      onRead()
      if (pipe.writableLength === 0) sendWaiting()
    })
  }

  function sendWaiting(): void {
    const messages = [...waiting.values()]
    waiting.clear()
    if (pipe.writable) for (const message of messages) write(encodeMessage(message))
  }

  return {
    send(message) {
      if (!pipe.writable) return
      if (saysAll(message)) {
        waiting.set(message.t, message)
        if (pipe.writableLength === 0) sendWaiting()
        return
      }
      sendWaiting()
      write(encodeMessage(message))
    },
    sendBytes(bytes) {
      if (!pipe.writable) return Promise.resolve()
      sendWaiting()
      return new Promise((resolve) => write(bytes, resolve))
    },
    unreadBytes: () => pipe.writableLength,
  }
}
