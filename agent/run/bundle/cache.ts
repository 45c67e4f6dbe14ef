import { randomBytes } from 'node:crypto'
import { mkdir, readdir, rename, rm, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Log } from '@windlass/shared/log.ts'
import { bootId, readOrNothing } from '../../os/process-id.ts'
import { isDigest, Removals, trashName } from './removals.ts'

/** Which bundles lie unpacked in the folder, how large they are and who uses them. */
export interface BundleCache {
  has(digest: string): boolean
  /** Moves a folder to where this bundle is to lie. Answers its bytes. */
  put(digest: string, draft: string): Promise<number>
  /** Takes it out, whoever uses it: what is found damaged is of no use to anybody. */
  drop(digest: string): void
  hold(digest: string): void
  release(digest: string): void
  stats(): { count: number; bytes: number }
  /** Removes all that nobody uses. */
  empty(): void
  close(): Promise<void>
}

export interface CacheLimits {
  bytes: number
  /** Of small bundles the bytes of their files are the least that they take of a disk, and each start looks at all. */
  count: number
}

interface Cached {
  bytes: number
  /** Counts up with each use. */
  usedAt: number
}

/** Drafts are incomplete, and the rest was being removed. */
const REMAINS = /^(draft|trash)-/

/** `inUse`: digests of what is executed while this agent starts. */
export async function openCache(
  folder: string,
  limits: CacheLimits,
  log: Log,
  inUse: readonly string[] = [],
): Promise<BundleCache> {
  await setOtherBootsAside(folder)
  const removals = new Removals(folder, log)
  const cached = new Map<string, Cached>()
  const users = new Map<string, number>()
  let clock = 0
  const { digests, remains } = await leftovers(folder)
  const found = [...new Set([...inUse.filter((digest) => digests.includes(digest)), ...digests])]
  for (const digest of found.slice(0, limits.count))
    cached.set(digest, { bytes: await folderBytes(path.join(folder, digest)), usedAt: clock++ })
  removals.add(...remains, ...found.slice(limits.count))

  const bytesOfAll = () => [...cached.values()].reduce((sum, each) => sum + each.bytes, 0)

  const makeRoom = (most: CacheLimits) => {
    let total = bytesOfAll()
    const isOver = () => total > most.bytes || cached.size > most.count
    if (!isOver()) return
    const idle = [...cached].filter(([digest]) => !users.has(digest)).sort(([, a], [, b]) => a.usedAt - b.usedAt)
    for (const [digest, { bytes }] of idle) {
      if (!isOver()) break
      cached.delete(digest)
      total -= bytes
      removals.add(digest)
    }
  }

  return {
    has: (digest) => cached.has(digest),
    async put(digest, draft) {
      const bytes = await folderBytes(draft)
      removals.free(digest)
      await rename(draft, path.join(folder, digest))
      cached.set(digest, { bytes, usedAt: clock++ })
      makeRoom(limits)
      return bytes
    },
    drop(digest) {
      cached.delete(digest)
      removals.add(digest)
    },
    hold(digest) {
      users.set(digest, (users.get(digest) ?? 0) + 1)
      const found = cached.get(digest)
      if (found) found.usedAt = clock++
    },
    release(digest) {
      const left = (users.get(digest) ?? 1) - 1
      if (left > 0) users.set(digest, left)
      else users.delete(digest)
    },
    stats: () => ({ count: cached.size, bytes: bytesOfAll() }),
    empty: () => makeRoom({ bytes: 0, count: 0 }),
    close: () => removals.close(),
  }
}

/**
 * Unpacking does not wait for the disk, so after a power cut a folder may hold empty files under the right names.
 * What an earlier boot unpacked is fetched again. Removing it may take minutes, so it is only moved here.
 */
async function setOtherBootsAside(folder: string): Promise<void> {
  const file = path.join(folder, 'boot')
  const boot = bootId()
  const [parent, former] = [path.dirname(folder), `${path.basename(folder)}.former-`]
  if (boot === '' || readOrNothing(file) !== boot) {
    const aside = path.join(parent, `${former}${randomBytes(12).toString('hex')}`)
    // A mount cannot be moved, nor can what is in the image of a container.
    await rename(folder, aside).catch(() => rm(folder, { recursive: true, force: true }))
  }
  await mkdir(folder, { recursive: true, mode: 0o700 })
  // Also what an agent has left that was killed between the two.
  for (const name of await readdir(parent))
    if (name.startsWith(former)) await rename(path.join(parent, name), path.join(folder, trashName()))
  await writeFile(file, boot)
}

/** Of an earlier process: digests, and what it did not bring to an end. */
async function leftovers(folder: string): Promise<{ digests: string[]; remains: string[] }> {
  const names = await readdir(folder)
  return { digests: names.filter(isDigest), remains: names.filter((name) => REMAINS.test(name)) }
}

async function folderBytes(folder: string): Promise<number> {
  let bytes = 0
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) bytes += (await stat(path.join(entry.parentPath, entry.name))).size
  }
  return bytes
}
