import { createHash, randomUUID } from 'node:crypto'
import { type FileHandle, mkdir, open, readdir, rename, rm, stat } from 'node:fs/promises'
import { dirname, join } from 'node:path'
import { littleRoom } from '@windlass/shared/disk-room.ts'
import { checkKey, digestOfKey } from './key.ts'
import type { ObjectBody, ObjectStat, ObjectStore } from './store.ts'

// Not a key that `checkKey` lets pass, so that no object can lie here.
const UNFINISHED = '.unfinished'
// A write takes seconds; what is older was left by a coordinator that was killed.
const ABANDONED_AFTER_MS = 3_600_000
const MIB = 1024 * 1024

interface FolderOptions {
  /** Kept free on the disk, where the database may lie as well; by default as `littleRoom` says. */
  reserveBytes?: number | undefined
}

/** Objects as files of a folder, which is made when it is not there. */
export async function openFolderStore(folder: string, { reserveBytes }: FolderOptions = {}): Promise<ObjectStore> {
  await mkdir(join(folder, UNFINISHED), { recursive: true, mode: 0o700 })
  await removeAbandoned(join(folder, UNFINISHED))

  function pathOf(key: string): string {
    checkKey(key)
    return join(folder, ...key.split('/'))
  }

  async function statOf(key: string): Promise<ObjectStat | null> {
    const found = await orNull(stat(pathOf(key)))
    return found?.isFile() ? { size: found.size, modifiedAt: Math.trunc(found.mtimeMs) } : null
  }

  return {
    stat: statOf,

    async put(key, body) {
      const path = pathOf(key)
      const unfinished = join(folder, UNFINISHED, randomUUID())
      await assertRoom(folder, reserveBytes)
      try {
        const written = await write(unfinished, body)
        const expected = digestOfKey(key)
        if (expected !== undefined && written.digest !== expected)
          throw new Error(`content of \`${key}\` has the digest ${written.digest}`)
        await moveTo(unfinished, path, folder)
        return { size: written.size, modifiedAt: Date.now() }
      } finally {
        // Gone already when all went well.
        await rm(unfinished, { force: true })
      }
    },

    async stream(key) {
      const handle = await orNull(open(pathOf(key)))
      if ((await handle?.stat())?.isFile()) return handle!.createReadStream()
      await handle?.close()
      return null
    },

    async delete(key) {
      const existed = (await statOf(key)) !== null
      await rm(pathOf(key), { force: true })
      return existed
    },
  }
}

/** Nobody can do without the database: it has the last of the disk for itself. */
async function assertRoom(folder: string, reserveBytes: number | undefined): Promise<void> {
  const little = await littleRoom(folder, reserveBytes)
  if (!little) return
  const [free, needed] = [little.free, little.needed].map((bytes) => Math.round(bytes / MIB))
  const found = `${free} MiB are free on the disk of ${folder}, and ${needed} are kept for the database`
  const message = `${found}: make room, or lower WINDLASS_DISK_RESERVE_MB.`
  throw Object.assign(new Error(message), { code: 'ENOSPC' })
}

async function write(path: string, body: ObjectBody): Promise<{ digest: string; size: number }> {
  const hash = createHash('sha256')
  let size = 0
  const file = await open(path, 'wx', 0o600)
  try {
    for await (const chunk of body instanceof Uint8Array ? [body] : body) {
      hash.update(chunk)
      size += chunk.length
      await writeAll(file, chunk)
    }
    await file.sync()
  } finally {
    await file.close()
  }
  return { digest: hash.digest('hex'), size }
}

async function writeAll(file: FileHandle, chunk: Uint8Array) {
  for (let done = 0; done < chunk.length;) {
    const { bytesWritten } = await file.write(chunk, done)
    done += bytesWritten
  }
}

/** A rename is only durable once the folders that name the file are on the disk too. */
async function moveTo(from: string, path: string, root: string) {
  const firstNew = await mkdir(dirname(path), { recursive: true, mode: 0o700 })
  await rename(from, path)
  const upTo = firstNew === undefined ? dirname(path) : dirname(firstNew)
  for (let folder = dirname(path); ; folder = dirname(folder)) {
    await syncFolder(folder)
    if (folder === upTo || folder === root || folder === dirname(folder)) return
  }
}

async function syncFolder(folder: string) {
  const handle = await open(folder, 'r')
  try {
    await handle.sync()
  } finally {
    await handle.close()
  }
}

async function removeAbandoned(folder: string) {
  for (const name of await readdir(folder)) {
    const found = await orNull(stat(join(folder, name)))
    if (found && Date.now() - found.mtimeMs > ABANDONED_AFTER_MS) await rm(join(folder, name), { force: true })
  }
}

async function orNull<T>(reading: Promise<T>): Promise<T | null> {
  try {
    return await reading
  } catch (error) {
    const code = error instanceof Error && 'code' in error ? error.code : undefined
    // EISDIR, ENOTDIR: the key is a part of other keys, or goes on below an object; nothing lies under it.
    if (code === 'ENOENT' || code === 'EISDIR' || code === 'ENOTDIR') return null
    throw error
  }
}
