import type { Writable } from 'node:stream'
import type { FrameName } from '@windlass/shared/wire/program.ts'
import { sendFrame } from './frames.ts'

// The agent takes no larger ones, as each byte may be a line: see agent/run/program/frame-limits.ts.
const PIECE_BYTES = 16 * 1024

/**
 * What JavaScript writes to stdout and stderr goes the way of phases and logs, so that all of it keeps its order, and
 * nothing is lost when the process exits. Made at first use: many programs print nothing, and streams cost a
 * millisecond to load.
 */
export function routeConsole(): void {
  replace('stdout', 1, 'out')
  replace('stderr', 2, 'err')
}

function replace(name: 'stdout' | 'stderr', fd: number, frame: FrameName): void {
  let stream: Writable | undefined
  Object.defineProperty(process, name, {
    configurable: true,
    enumerable: true,
    get: () => (stream ??= makeStream(fd, frame)),
  })
}

function makeStream(fd: number, frame: FrameName): Writable {
  const streams = process.getBuiltinModule('node:stream')
  const stream = new streams.Writable({
    decodeStrings: true,
    write: (chunk: Buffer, _encoding, done) => {
      sendPieces(frame, chunk)
      done()
    },
    // Like Node's own: ending them is refused, everybody shares them.
    destroy: (_error, done) => done(null),
  })
  return Object.assign(stream, { fd, isTTY: false, _type: 'pipe' })
}

function sendPieces(frame: FrameName, chunk: Buffer): void {
  for (let from = 0; from < chunk.length; from += PIECE_BYTES)
    sendFrame(frame, chunk.subarray(from, from + PIECE_BYTES))
}
