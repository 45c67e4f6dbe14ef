import { renameSync } from 'node:fs'
import { mkdir, readdir, rm, stat, writeFile } from 'node:fs/promises'
import path from 'node:path'
import type { Log } from '@windlass/shared/log.ts'
import { bootId, readOrNothing } from '../../os/process-id.ts'

/** Which bundles lie unpacked in the folder, how large they are and who uses them. */
export interface BundleCache {
  has(digest: string): boolean
  add(digest: string, bytes: number): void
  /** Takes it out, whoever uses it: what is found damaged is of no use to anybody. */
  drop(digest: string): void
  hold(digest: string): void
  release(digest: string): void
  stats(): { count: number; bytes: number }
  /** Removes all that nobody uses. */
  empty(): void
}

interface Cached {
  bytes: number
  /** Counts up with each use. */
  usedAt: number
}

export async function openCache(folder: string, limitBytes: number, log: Log): Promise<BundleCache> {
  await forgetOtherBoots(folder)
  const cached = new Map<string, Cached>()
  const users = new Map<string, number>()
  let clock = 0
  for (const digest of await leftovers(folder)) {
    cached.set(digest, { bytes: await folderBytes(path.join(folder, digest)), usedAt: clock++ })
  }

  const bytesOfAll = () => [...cached.values()].reduce((sum, each) => sum + each.bytes, 0)

  const makeRoom = (mostBytes = limitBytes) => {
    let total = bytesOfAll()
    const idle = [...cached].filter(([digest]) => !users.has(digest)).sort(([, a], [, b]) => a.usedAt - b.usedAt)
    for (const [digest, { bytes }] of idle) {
      if (total <= mostBytes) break
      cached.delete(digest)
      total -= bytes
      void removeBundle(folder, digest, log)
    }
  }

  return {
    has: (digest) => cached.has(digest),
    add(digest, bytes) {
      cached.set(digest, { bytes, usedAt: clock++ })
      makeRoom()
    },
    drop(digest) {
      cached.delete(digest)
      void removeBundle(folder, digest, log)
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
    empty: () => makeRoom(0),
  }
}

let removals = 0

/** Renamed first, and at once: the digest may be fetched again while its old folder is being removed. */
async function removeBundle(folder: string, digest: string, log: Log): Promise<void> {
  const trash = path.join(folder, `trash-${process.pid}-${removals++}`)
  try {
    renameSync(path.join(folder, digest), trash)
    await rm(trash, { recursive: true, force: true })
    log('bundle.removed', { digest })
  } catch (error) {
    log.warn('bundle.not-removed', { digest, error })
  }
}

/**
 * Unpacking does not wait for the disk, so after a power cut a folder may hold empty files under the right names.
 * What an earlier boot unpacked is fetched again.
 */
async function forgetOtherBoots(folder: string): Promise<void> {
  const file = path.join(folder, 'boot')
  const boot = bootId()
  if (boot === '' || readOrNothing(file) !== boot) await rm(folder, { recursive: true, force: true })
  await mkdir(folder, { recursive: true, mode: 0o700 })
  await writeFile(file, boot)
}

/** Digests of an earlier process. Its drafts are incomplete. */
async function leftovers(folder: string): Promise<string[]> {
  const names = await readdir(folder)
  const drafts = names.filter((name) => /^(draft|trash)-/.test(name))
  await Promise.all(drafts.map((name) => rm(path.join(folder, name), { recursive: true, force: true })))
  return names.filter((name) => /^[0-9a-f]{64}$/.test(name))
}

export async function folderBytes(folder: string): Promise<number> {
  let bytes = 0
  for (const entry of await readdir(folder, { recursive: true, withFileTypes: true })) {
    if (entry.isFile()) bytes += (await stat(path.join(entry.parentPath, entry.name))).size
  }
  return bytes
}
