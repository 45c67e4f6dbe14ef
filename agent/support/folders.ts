import { lstat, readdir } from 'node:fs/promises'
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

const MOST = 20_000

export async function figuresOf(folder: string): Promise<FolderFigures> {
  const figures: FolderFigures = { files: 0, bytes: 0, oldestAt: null, newestAt: null, isCut: false }
  const open = [folder]
  for (let next = open.pop(); next !== undefined; next = open.pop()) {
    const entries = await readdir(next, { withFileTypes: true }).catch(() => [])
    for (const entry of entries) {
      const full = path.join(next, entry.name)
      if (figures.files >= MOST) return { ...figures, isCut: true }
      if (entry.isDirectory()) open.push(full)
      else await count(figures, full)
    }
  }
  return figures
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
