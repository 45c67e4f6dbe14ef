import { realpathSync, statSync } from 'node:fs'

/**
 * A folder as it can be told from a copy of it, and from what it was before it was moved; empty where there is none. It
 * holds within one boot: disks get other numbers at the next one.
 */
export function folderMark(folder: string): string {
  const found = statSync(folder, { bigint: true, throwIfNoEntry: false })
  return found ? `${found.dev}/${found.ino}:${realpathSync(folder)}` : ''
}
