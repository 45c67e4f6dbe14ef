import type { Readable } from 'node:stream'

export interface TurnReader {
  pause(): void
  resume(): void
}

/** What is worked off in one go. Of line breaks alone these are as many events, which take some 20 ms. */
const SLICE_BYTES = 16 * 1024
/** After so much work, what else waits has its turn. */
const TURN_MS = 5

/**
 * Reads a pipe of a program so that it never has the event loop for long: where a pipe is always full, the system hands
 * out 32 chunks of 64 KiB one after the other, and each may hold tens of thousands of lines.
 */
export function readInTurns(stream: Readable, onData: (bytes: Buffer) => void): TurnReader {
  let spentMs = 0
  let isPaused = false
  let isResting = false

  function rest(): void {
    isResting = true
    stream.pause()
    setImmediate(() => {
      isResting = false
      spentMs = 0
      if (!isPaused) stream.resume()
    })
  }

  stream.on('data', (chunk: Buffer) => {
    for (let at = 0; at < chunk.length; at += SLICE_BYTES) {
      const since = performance.now()
      onData(chunk.subarray(at, at + SLICE_BYTES))
      spentMs += performance.now() - since
      if (stream.destroyed) return
      if (spentMs > TURN_MS) rest()
      const next = at + SLICE_BYTES
      if (!isPaused && !isResting) continue
      if (next < chunk.length) stream.unshift(chunk.subarray(next))
      return
    }
  })

  return {
    pause() {
      isPaused = true
      stream.pause()
    },
    resume() {
      isPaused = false
      if (!isResting) stream.resume()
    },
  }
}
