import { statfsSync } from 'node:fs'
import { dirname } from 'node:path'
import { diskTrouble, fullDiskText } from '@windlass/agent/disk-full.ts'

/** With less, PostgreSQL does not start, and may be unable to say why in its log. */
const LEAST_FREE_BYTES = 1024 * 1024

/** What is said of a start that failed. */
export function failureOf(error: unknown, home: string): string {
  const trouble = diskTrouble(error, home, SETTING)
  if (trouble !== undefined) return trouble
  const message = error instanceof Error ? error.message : String(error)
  return freeBytes(home) < LEAST_FREE_BYTES ? `${message}\n${fullDiskText(home, SETTING)}` : message
}

/** For whoever goes on, or tries again by itself. Undefined where the disk has room. */
export function noRoomText(folder: string): string | undefined {
  return freeBytes(folder) < LEAST_FREE_BYTES ? `The disk of ${folder} is full: make room there.` : undefined
}

const SETTING = 'WINDLASS_HOME'

/** Of the folder, or of the next one above it that there is. */
function freeBytes(folder: string): number {
  try {
    const { bavail, bsize } = statfsSync(folder)
    return bavail * bsize
  } catch (error) {
    if ((error as NodeJS.ErrnoException).code !== 'ENOENT' || dirname(folder) === folder) return Infinity
    return freeBytes(dirname(folder))
  }
}
