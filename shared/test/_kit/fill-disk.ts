import { closeSync, openSync, statfsSync, writeSync } from 'node:fs'

/** Down to the last byte of the disk on which the file lies. */
export function fillDisk(file: string): void {
  const chunk = Buffer.alloc(64 * 1024)
  const out = openSync(file, 'a')
  try {
    const { bsize } = statfsSync(file)
    for (let size = chunk.length; size >= Math.min(bsize, 4096); size = Math.floor(size / 2))
      writeAll(out, chunk.subarray(0, size))
  } finally {
    closeSync(out)
  }
}

function writeAll(out: number, chunk: Buffer): void {
  try {
    for (;;) writeSync(out, chunk)
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOSPC') throw error
  }
}
