import { once } from 'node:events'
import { existsSync, watch } from 'node:fs'
import type { FSWatcher } from 'node:fs'
import { readdir } from 'node:fs/promises'
import path from 'node:path'
import { isIgnored } from '../deploy/collect.ts'
import { Failure } from '../failure.ts'

// Editors save in several steps, a switch of branches touches many files: it is one save.
const QUIET_MS = 20
/** How often it is looked whether a folder that has gone is there again. */
const ABSENT_MS = 500

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
  let absence: NodeJS.Timeout | undefined
  let isClosed = false
  let bell = new AbortController()

  const ring = () => {
    clearTimeout(timer)
    timer = setTimeout(() => bell.abort(), QUIET_MS)
  }

  /**
   * It may be a new folder, whose files are news as well. Where all is gone, as in the midst of a checkout, it may come
   * back.
   */
  function watchAnew(): void {
    watchAll(root).catch((error: unknown) => {
      if (!isGone(error)) return bell.abort(watchFailure(root, error))
      clearTimeout(absence)
      if (!isClosed) absence = setTimeout(lookForRoot, ABSENT_MS)
    })
  }

  function lookForRoot(): void {
    if (existsSync(root)) ring()
    watchAnew()
  }

  async function watchAll(folder: string): Promise<void> {
    if (isClosed) return
    if (!watchers.has(folder)) watchers.set(folder, watchOne(folder))
    const entries = await readdir(folder, { withFileTypes: true })
    const below = entries.filter((entry) => entry.isDirectory() && !isIgnored(entry.name))
    for (const { name } of below) await watchAll(path.join(folder, name))
  }

  function watchOne(folder: string): FSWatcher {
    const watcher = watch(folder, (event, name) => {
      // So it is told that the folder itself has gone: of one that takes its place this watcher sees nothing.
      if (event === 'rename' && name === path.basename(folder)) forget()
      if (typeof name === 'string' && isIgnored(name)) return
      watchAnew()
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
      isClosed = true
      clearTimeout(timer)
      clearTimeout(absence)
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
