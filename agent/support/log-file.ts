import { open, stat } from 'node:fs/promises'
import type { FileHandle } from 'node:fs/promises'
import { pause } from '@windlass/shared/time.ts'

const CHUNK = 64 * 1024
const LOOK_MS = 250
/** Rotated pieces that may hold the lines before those of the file itself: `agent.log.1`, `agent.log.2`. */
const PIECES = [2, 1]

/** The last lines of a log that is kept in pieces, oldest first. `since` leaves out what was said before, in ms since the epoch. */
export async function lastLines(
  file: string,
  { count, since = 0, end = Infinity }: { count: number; since?: number; end?: number },
): Promise<string[]> {
  const lines: string[] = []
  // The newest piece is read first: mostly it has them all.
  for (const piece of [file, ...PIECES.toReversed().map((number) => `${file}.${number}`)]) {
    if (lines.length >= count) break
    lines.unshift(...(await tailOf(piece, count - lines.length, piece === file ? end : Infinity)))
  }
  return lines.filter((line) => timeOf(line) >= since)
}

/** From its end backwards, for it may be long. */
async function tailOf(file: string, count: number, end: number): Promise<string[]> {
  const handle = await openIfThere(file)
  if (!handle) return []
  try {
    let at = Math.min(end, (await handle.stat()).size)
    let bytes = Buffer.alloc(0)
    while (at > 0 && countOf(bytes) <= count) {
      const length = Math.min(CHUNK, at)
      at -= length
      const { buffer } = await handle.read(Buffer.alloc(length), 0, length, at)
      bytes = Buffer.concat([buffer, bytes])
    }
    const lines = bytes
      .toString('utf8')
      .split('\n')
      .filter((line) => line !== '')
    return count === 0 ? [] : lines.slice(-count)
  } finally {
    await handle.close()
  }
}

const countOf = (bytes: Buffer) => bytes.reduce((sum, byte) => sum + (byte === 10 ? 1 : 0), 0)

/** How far a file goes at present, for reading on from there. */
export async function sizeOf(file: string): Promise<number> {
  return (await stat(file).catch(() => undefined))?.size ?? 0
}

/** Lines as they come from a place on, also when the file is put aside and begun anew. Ends with the signal. */
export async function* newLines(file: string, from: number, signal: AbortSignal): AsyncGenerator<string> {
  let handle = await openIfThere(file)
  let at = from
  let rest = ''
  try {
    while (!signal.aborted) {
      const read: Buffer = handle ? await readFrom(handle, at) : Buffer.alloc(0)
      at += read.length
      const lines = (rest + read.toString('utf8')).split('\n')
      rest = lines.pop() ?? ''
      yield* lines
      if (read.length > 0) continue
      if (await isAnother(file, handle)) {
        await handle?.close()
        handle = await openIfThere(file)
        at = 0
        continue
      }
      await pause(LOOK_MS, signal)
    }
  } finally {
    await handle?.close()
  }
}

/** Whole characters only: what is cut at the end of a chunk comes with the next one. */
async function readFrom(handle: FileHandle, at: number): Promise<Buffer> {
  const { bytesRead, buffer } = await handle.read(Buffer.alloc(CHUNK), 0, CHUNK, at)
  const bytes = buffer.subarray(0, bytesRead)
  const end = bytesRead < CHUNK ? bytesRead : bytes.lastIndexOf(10) + 1 || bytesRead
  return bytes.subarray(0, end)
}

async function isAnother(file: string, handle: FileHandle | undefined): Promise<boolean> {
  const found = await stat(file).catch(() => undefined)
  if (!found) return false
  return !handle || found.ino !== (await handle.stat()).ino
}

async function openIfThere(file: string): Promise<FileHandle | undefined> {
  try {
    return await open(file, 'r')
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code === 'ENOENT') return undefined
    throw error
  }
}

/** Lines are JSON with `at`; what is none was printed by something else, and is of no known time. */
function timeOf(line: string): number {
  const at = /^\{"at":(\d+)/.exec(line)?.[1]
  return at === undefined ? Infinity : Number(at)
}
