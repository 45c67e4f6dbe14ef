import { closeSync, fstatSync, mkdirSync, openSync, renameSync } from 'node:fs'
import path from 'node:path'
import { endOf, type LogOut, standardOut } from '@windlass/shared/log-out.ts'

export const PIECE_BYTES = 10 * 1024 * 1024
/** The one that is written and those before it. */
const PIECES = 3

/** Where log lines go. What cannot be written there goes to stderr: a full disk must not end the agent, nor silence it. */
export function openLogFile(file: string, pieceBytes = PIECE_BYTES): LogOut {
  mkdirSync(path.dirname(file), { recursive: true })
  let fd = openSync(file, 'a', 0o600)
  let bytes = fstatSync(fd).size
  const end = endOf(() => fd)

  const rotate = () => {
    shiftPieces(file)
    renameSync(file, `${file}.1`)
    const next = openSync(file, 'a', 0o600)
    closeSync(fd)
    fd = next
    bytes = 0
  }

  return {
    write(line) {
      try {
        if (bytes >= pieceBytes) rotate()
        bytes += end.write(line)
      } catch {
        // Whatever is wrong with that file, here the line can be read at least.
        standardOut(2).write(line)
      }
    },
  }
}

/** Makes `file.1` free; the oldest piece is lost. */
export function shiftPieces(file: string): void {
  for (let piece = PIECES - 1; piece > 1; piece--) renameIfThere(`${file}.${piece - 1}`, `${file}.${piece}`)
}

function renameIfThere(from: string, to: string): void {
  try {
    renameSync(from, to)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT') throw error
  }
}
