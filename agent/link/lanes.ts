import { WebSocket } from 'ws'
import { type Lane, messagesOf, PART_CHARS } from '@windlass/shared/wire/parts.ts'
import type { UpwardPace } from './pace.ts'

/** Beyond this the spool waits: what fast programs print lies on disk, not in the socket's buffer. */
const WAITING_BYTES = 256 * 1024

/** Sends long frames part by part, so that those of the other lane come between. Only entries wait for the pace. */
export class LaneOfFrames {
  readonly #lane: Lane
  readonly #ws: WebSocket
  readonly #pace: UpwardPace
  /** What the coordinator takes as a part that is not the last one; one of before says nothing of it. */
  leastPartChars = 32 * 1024
  #last: Promise<void> | undefined

  constructor(lane: Lane, ws: WebSocket, pace: UpwardPace) {
    this.#lane = lane
    this.#ws = ws
    this.#pace = pace
  }

  send(text: string): Promise<void> | undefined {
    if (!this.#last && this.#hasRoom() && text.length <= this.#partChars()) return this.#write(text)
    const sending = this.#sendBehind(this.#last, text).finally(() => {
      if (this.#last === sending) this.#last = undefined
    })
    this.#last = sending
    return sending
  }

  async #sendBehind(before: Promise<void> | undefined, text: string): Promise<void> {
    await before
    for (const message of messagesOf(text, this.#lane, () => this.#partChars())) {
      if (!this.#hasRoom()) await this.#pace.room()
      if (this.#ws.readyState !== WebSocket.OPEN) return
      await this.#write(message)
    }
  }

  #hasRoom(): boolean {
    return this.#lane === 'others' || this.#pace.hasRoom
  }

  #partChars(): number {
    if (this.#lane === 'others') return PART_CHARS
    // Half of what may be under way, so that one is there while the other is on its way.
    return Math.max(2 * this.leastPartChars, Math.min(PART_CHARS, Math.floor(this.#pace.limitBytes / 2)))
  }

  #write(text: string): Promise<void> | undefined {
    if (this.#ws.readyState !== WebSocket.OPEN) return undefined
    const bytes = Buffer.byteLength(text)
    const sending = this.#hand(text, this.#ws.bufferedAmount + bytes >= WAITING_BYTES)
    this.#pace.sent(bytes)
    return sending
  }

  #hand(text: string, isFull: boolean): Promise<void> | undefined {
    // An error here is followed by `close`, where it is told once for all frames.
    if (isFull) return new Promise((resolve) => this.#ws.send(text, () => resolve()))
    this.#ws.send(text)
    return undefined
  }
}
