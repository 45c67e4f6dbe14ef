import { copyFileSync, rmSync, statSync, truncateSync } from 'node:fs'
import { PIECE_BYTES, shiftPieces } from '@windlass/agent/log-file.ts'

/**
 * Begins the log of a part anew when it is long, and keeps the pieces before. The part goes on with the file that it
 * was given, also after our own end: so the file is copied and emptied. A line that comes in between is lost.
 */
export function cutLog(file: string, pieceBytes = PIECE_BYTES): void {
  try {
    if (statSync(file).size < pieceBytes) return
    shiftPieces(file)
    copyOrNothing(file, `${file}.1`)
    truncateSync(file)
  } catch {
    // There is no room for a copy, or no file: the next look tries again.
  }
}

function copyOrNothing(from: string, to: string): void {
  try {
    copyFileSync(from, to)
  } catch (error) {
    rmSync(to, { force: true })
    throw error
  }
}
