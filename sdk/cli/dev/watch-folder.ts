import { once } from 'node:events'
import { watch } from 'node:fs'
import type { FSWatcher } from 'node:fs'
import { readdir } from 'node:fs/promises'
import path from 'node:path'
import { isIgnored } from '../deploy/collect.ts'
import { Failure } from '../failure.ts'

// Editors save in several steps, a switch of branches touches many files: it is one save.
const QUIET_MS = 20

/** Tells when something in a folder has changed that would be deployed. */
export interface FolderWatch {
  /** Aborted as soon as something has changed since the last `next()`. */
  readonly news: AbortSignal
  /** Resolves when something has changed since the last time; rejects when the folder cannot be watched any more. */
  next(): Promise<void>
  close(): void
}

/**
 * Watches each folder by itself, without those that are ignored: a watch on the whole tree would hold every file of
 * node_modules, and a watch on a file loses it when an editor puts a new one in its place.
 */
export async function watchFolder(root: string): Promise<FolderWatch> {
  const watchers = new Map<string, FSWatcher>()
  let timer: NodeJS.Timeout | undefined
  let bell = new AbortController()

  const ring = () => {
    clearTimeout(timer)
    timer = setTimeout(() => bell.abort(), QUIET_MS)
  }

  async function watchAll(folder: string): Promise<void> {
    if (!watchers.has(folder)) watchers.set(folder, watchOne(folder))
    const entries = await readdir(folder, { withFileTypes: true })
    const below = entries.filter((entry) => entry.isDirectory() && !isIgnored(entry.name))
    for (const { name } of below) await watchAll(path.join(folder, name))
  }

  function watchOne(folder: string): FSWatcher {
    const watcher = watch(folder, (_event, name) => {
      if (typeof name === 'string' && isIgnored(name)) return
      // It may be a new folder, whose files are news as well. One that has gone takes its watcher along.
      watchAll(root).catch((error: unknown) => isGone(error) || bell.abort(watchFailure(root, error)))
      ring()
    })
    const forget = () => {
      watcher.close()
      watchers.delete(folder)
    }
    watcher.on('error', forget)
    watcher.on('close', forget)
    return watcher
  }

  await watchAll(root).catch((error: unknown) => {
    throw watchFailure(root, error)
  })
  return {
    get news() {
      return bell.signal
    },
    async next() {
      const { signal } = bell
      if (!signal.aborted) await once(signal, 'abort')
      if (signal.reason instanceof Failure) throw signal.reason
      bell = new AbortController()
    },
    close() {
      clearTimeout(timer)
      for (const watcher of watchers.values()) watcher.close()
    },
  }
}

function isGone(error: unknown): boolean {
  return error instanceof Error && 'code' in error && (error.code === 'ENOENT' || error.code === 'ENOTDIR')
}

function watchFailure(root: string, error: unknown): Failure {
  const why = error instanceof Error ? error.message : String(error)
  const isLimit = error instanceof Error && 'code' in error && error.code === 'ENOSPC'
  return new Failure(
    `${root} cannot be watched: ${why}.`,
    isLimit
      ? 'allow more watches: sudo sysctl fs.inotify.max_user_watches=524288'
      : 'windlass dev again, in a folder that is there',
  )
}
