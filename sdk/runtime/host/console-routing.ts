import type { Writable } from 'node:stream'
import type { FrameName } from '@windlass/shared/wire/program.ts'

// The agent takes no larger ones, as each byte may be a line: see agent/run/program/frame-limits.ts.
const PIECE_BYTES = 16 * 1024

export type Say = (name: FrameName, payload: string | Uint8Array) => void

/**
 * What JavaScript writes to stdout and stderr goes the way of phases and logs, so that all of it keeps its order, and
 * nothing is lost when the process exits. Made at first use: many programs print nothing, and streams cost a
 * millisecond to load.
 */
export function routeConsole(say: Say): void {
  replace('stdout', 1, (piece) => say('out', piece))
  replace('stderr', 2, (piece) => say('err', piece))
}

function replace(name: 'stdout' | 'stderr', fd: number, write: (piece: Buffer) => void): void {
  let stream: Writable | undefined
  Object.defineProperty(process, name, {
    configurable: true,
    enumerable: true,
    get: () => (stream ??= makeStream(fd, write)),
  })
}

function makeStream(fd: number, write: (piece: Buffer) => void): Writable {
  const streams = process.getBuiltinModule('node:stream')
  const stream = new streams.Writable({
    decodeStrings: true,
    write: (chunk: Buffer, _encoding, done) => {
      writePieces(chunk, write)
      done()
    },
    // Like Node's own: ending them is refused, everybody shares them.
    destroy: (_error, done) => done(null),
  })
  return Object.assign(stream, { fd, isTTY: false, _type: 'pipe' })
}

function writePieces(chunk: Buffer, write: (piece: Buffer) => void): void {
  for (let from = 0; from < chunk.length; from += PIECE_BYTES) write(chunk.subarray(from, from + PIECE_BYTES))
}
