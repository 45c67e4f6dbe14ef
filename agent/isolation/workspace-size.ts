import fs from 'node:fs/promises'
import path from 'node:path'

const LOOK_MS = 2_000
/** Looking takes this part of one core at most. */
const SHARE = 1 / 20
const BLOCK_BYTES = 512

export interface Sized {
  workspace: string
  limitBytes: number
  /** Called once, when there is more. */
  onFull(bytes: number): void
}

export interface SizeWatch {
  /** Answers how to stop. */
  watch(sized: Sized): () => void
  close(): void
}

/** Looks at the folders of runs that may not grow without end, one after the other, and less often where that takes long. */
export function watchSizes(): SizeWatch {
  const watched = new Set<Sized>()
  let timer: NodeJS.Timeout | undefined
  let isLooking = false

  async function look(): Promise<void> {
    isLooking = true
    const began = performance.now()
    for (const sized of watched) {
      const bytes = await bytesIn(sized.workspace, sized.limitBytes)
      if (bytes > sized.limitBytes && watched.delete(sized)) sized.onFull(bytes)
    }
    isLooking = false
    lookLater(Math.max(LOOK_MS, (performance.now() - began) / SHARE))
  }

  function lookLater(afterMs: number): void {
    if (timer || isLooking || watched.size === 0) return
    timer = setTimeout(() => {
      timer = undefined
      void look()
    }, afterMs)
    timer.unref()
  }

  return {
    watch(sized) {
      watched.add(sized)
      lookLater(LOOK_MS)
      return () => void watched.delete(sized)
    },
    close() {
      watched.clear()
      clearTimeout(timer)
    },
  }
}

/** What it really occupies; no further than `most`. The program may be changing it just now. */
async function bytesIn(folder: string, most: number): Promise<number> {
  let bytes = 0
  const folders = [folder]
  for (let next = folders.pop(); next !== undefined && bytes <= most; next = folders.pop()) {
    for (const entry of await entriesOf(next)) {
      const file = path.join(next, entry.name)
      if (entry.isDirectory()) folders.push(file)
      else bytes += await sizeOf(file)
      if (bytes > most) break
    }
  }
  return bytes
}

async function entriesOf(folder: string) {
  try {
    return await fs.readdir(folder, { withFileTypes: true })
  } catch {
    // Gone since, or closed by the program; what it keeps from us is still under the limit of a single file.
    return []
  }
}

async function sizeOf(file: string): Promise<number> {
  try {
    return (await fs.lstat(file)).blocks * BLOCK_BYTES
  } catch {
    return 0
  }
}
