import type { Dirent } from 'node:fs'
import { lstat, opendir } from 'node:fs/promises'
import path from 'node:path'

/** How much lies in a part of the state folder, and of what age. Names and contents stay where they are. */
export interface FolderFigures {
  files: number
  bytes: number
  oldestAt: number | null
  newestAt: number | null
  /** More is there than was counted. */
  isCut: boolean
}

/** Files and folders that are looked at: a program may have left any number of either. */
const MOST = 20_000

export async function figuresOf(folder: string, most = MOST): Promise<FolderFigures> {
  const figures: FolderFigures = { files: 0, bytes: 0, oldestAt: null, newestAt: null, isCut: false }
  const open = [folder]
  let left = most
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    for await (const entry of entriesOf(next)) {
      if (left-- === 0) return { ...figures, isCut: true }
      const full = path.join(next, entry.name)
      if (entry.isDirectory()) open.push(full)
      else await count(figures, full)
    }
  }
  return figures
}

/** A piece at a time, as there may be millions. What cannot be read, or is gone meanwhile, has none. */
async function* entriesOf(folder: string): AsyncGenerator<Dirent> {
  try {
    yield* await opendir(folder, { bufferSize: 256 })
  } catch {
    // The figures are of what can be seen.
  }
}

async function count(figures: FolderFigures, file: string): Promise<void> {
  const found = await lstat(file).catch(() => undefined)
  if (!found) return
  const at = Math.round(found.mtimeMs)
  figures.files += 1
  figures.bytes += found.size
  figures.oldestAt = Math.min(figures.oldestAt ?? at, at)
  figures.newestAt = Math.max(figures.newestAt ?? at, at)
}
