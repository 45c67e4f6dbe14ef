import fs from 'node:fs/promises'

const LOOK_MS = 2_000
/** Looking takes this part of one core, unless it would rest for longer than that. */
const SHARE = 1 / 20
const MOST_REST_MS = 10_000
const BLOCK_BYTES = 512
const SLASH = Buffer.from('/')
const HIDING = ['ENAMETOOLONG', 'EACCES', 'ELOOP']

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

/** Looks at the folders of runs that may not grow without end: each less often where that takes long, whatever others do. */
export function watchSizes(): SizeWatch {
  const watched = new Map<Sized, NodeJS.Timeout>()

  async function look(sized: Sized): Promise<void> {
    const began = performance.now()
    const bytes = await bytesIn(sized.workspace, sized.limitBytes)
    if (!watched.has(sized)) return
    const tookMs = performance.now() - began
    if (bytes <= sized.limitBytes) return lookLater(sized, Math.min(MOST_REST_MS, Math.max(LOOK_MS, tookMs / SHARE)))
    watched.delete(sized)
    sized.onFull(bytes)
  }

  function lookLater(sized: Sized, afterMs: number): void {
    const timer = setTimeout(() => void look(sized), afterMs)
    timer.unref()
    watched.set(sized, timer)
  }

  function forget(sized: Sized): void {
    clearTimeout(watched.get(sized))
    watched.delete(sized)
  }

  return {
    watch(sized) {
      lookLater(sized, LOOK_MS)
      return () => forget(sized)
    },
    close() {
      for (const sized of watched.keys()) forget(sized)
    },
  }
}

/**
 * What it really occupies; no further than `most`. The program may be changing it just now. What has no bytes counts as
 * one block, as it has its place in the file system.
 */
async function bytesIn(folder: string, most: number): Promise<number> {
  let bytes = 0
  const folders = [Buffer.from(folder)]
  for (let next = folders.pop(); next !== undefined && bytes <= most; next = folders.pop())
    bytes += await bytesBeside(next, folders, most - bytes)
  return bytes
}

/** Of all that lies in this folder itself. Those in it are added to `folders`. */
async function bytesBeside(folder: Buffer, folders: Buffer[], most: number): Promise<number> {
  let bytes = 0
  try {
    // Names need not be text. The types know no such encoding here; Node takes it.
    for await (const { name } of await fs.opendir(folder, { encoding: 'buffer' as BufferEncoding })) {
      bytes += await bytesOf(Buffer.concat([folder, SLASH, name as unknown as Buffer]), folders)
      if (bytes > most) return bytes
    }
  } catch (error) {
    return bytes + hiddenBy(error)
  }
  return bytes
}

async function bytesOf(file: Buffer, folders: Buffer[]): Promise<number> {
  try {
    const stat = await fs.lstat(file)
    if (stat.isDirectory()) folders.push(file)
    return Math.max(BLOCK_BYTES, stat.blocks * BLOCK_BYTES)
  } catch (error) {
    return BLOCK_BYTES + hiddenBy(error)
  }
}

/**
 * What a program keeps from us may be of any size: deeper than a path may be long, or closed to us. Other failures are
 * none of its doing, or say that it is gone since.
 */
function hiddenBy(error: unknown): number {
  return HIDING.includes((error as NodeJS.ErrnoException).code ?? '') ? Infinity : 0
}
