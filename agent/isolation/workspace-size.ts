import fs from 'node:fs/promises'

const LOOK_MS = 2_000
/** Looking takes this part of one core, unless it would rest for longer than that. */
const SHARE = 1 / 20
const MOST_REST_MS = 10_000
const BLOCK_BYTES = 512
const SLASH = Buffer.from('/')
const HIDING = ['ENAMETOOLONG', 'ELOOP']

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
      bytes += await bytesOf(Buffer.concat([folder, SLASH, name as unknown as Buffer]), folder, folders)
      if (bytes > most) return bytes
    }
  } catch (error) {
    return bytes + (await hiddenBy(error, folder))
  }
  return bytes
}

async function bytesOf(file: Buffer, folder: Buffer, folders: Buffer[]): Promise<number> {
  try {
    const stat = await fs.lstat(file)
    if (stat.isDirectory()) folders.push(file)
    return Math.max(BLOCK_BYTES, stat.blocks * BLOCK_BYTES)
  } catch (error) {
    return BLOCK_BYTES + (await hiddenBy(error, folder))
  }
}

/**
 * What a program keeps from us may be of any size: deeper than a path may be long, or in a folder of its own that is
 * closed to us. Where we have its user the folder is ours; one of somebody else, as of a container, is none of its
 * doing. Other failures are not either, or say that it is gone since.
 */
async function hiddenBy(error: unknown, folder: Buffer): Promise<number> {
  const code = (error as NodeJS.ErrnoException).code ?? ''
  const isHidden = HIDING.includes(code) || (code === 'EACCES' && (await isOurs(folder)))
  return isHidden ? Infinity : 0
}

async function isOurs(folder: Buffer): Promise<boolean> {
  try {
    return (await fs.lstat(folder)).uid === process.geteuid?.()
  } catch {
    return false
  }
}
