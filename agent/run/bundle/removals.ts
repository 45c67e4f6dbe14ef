import { randomBytes } from 'node:crypto'
import { renameSync } from 'node:fs'
import { readdir, rm, rmdir } from 'node:fs/promises'
import path from 'node:path'
import type { Log } from '@windlass/shared/log.ts'
import { probe } from '@windlass/shared/probe.ts'
import { atMost } from '@windlass/shared/time.ts'

const CLOSE_MS = 2_000
/** Begins the names of what is being removed. */
const TRASH = 'trash-'

/**
 * Removes bundles one after the other, with one call at a time: thousands at once would keep all other files of the
 * agent waiting. A start does not wait for them; what is left when the agent ends is there for the next one.
 */
export class Removals {
  readonly #folder: string
  readonly #log: Log
  readonly #names = new Set<string>()
  readonly #closing = new AbortController()
  #removing: Promise<void> | undefined

  /** `folder`: all bundles lie in it. */
  constructor(folder: string, log: Log) {
    this.#folder = folder
    this.#log = log
  }

  add(...names: readonly string[]): void {
    for (const name of names) this.#names.add(name)
    this.#removing ??= this.#names.size > 0 ? this.#removeAll() : undefined
  }

  /** Another bundle may get this name now. */
  free(name: string): void {
    if (!this.#names.delete(name)) return
    try {
      this.add(this.#moveAside(name))
    } catch (error) {
      this.#log.warn('bundle.not-removed', { name, error })
    }
  }

  /** Stops in the midst of a removal. */
  async close(): Promise<void> {
    this.#closing.abort()
    if (this.#removing) await atMost(CLOSE_MS, this.#removing)
  }

  async #removeAll(): Promise<void> {
    const { signal } = this.#closing
    // More may be added meanwhile.
    for (const name of this.#names) {
      if (signal.aborted) break
      this.#names.delete(name)
      await this.#remove(name, signal)
    }
    this.#removing = undefined
    probe('bundles.removed', { left: this.#names.size })
  }

  async #remove(name: string, signal: AbortSignal): Promise<void> {
    try {
      await removeFolder(path.join(this.#folder, this.#moveAside(name)), signal)
      if (isDigest(name)) this.#log('bundle.removed', { digest: name })
    } catch (error) {
      if (!signal.aborted) this.#log.warn('bundle.not-removed', { name, error })
    }
  }

  /** It may be fetched again while it is being removed. Answers its new name. */
  #moveAside(name: string): string {
    if (!isDigest(name)) return name
    const trash = trashName()
    renameSync(path.join(this.#folder, name), path.join(this.#folder, trash))
    return trash
  }
}

/** Nobody else writes there, and on a full disk nothing can be made for it. */
async function removeFolder(folder: string, signal: AbortSignal): Promise<void> {
  for (const entry of await readdir(folder, { withFileTypes: true })) {
    signal.throwIfAborted()
    const inside = path.join(folder, entry.name)
    await (entry.isDirectory() ? removeFolder(inside, signal) : rm(inside, { force: true }))
  }
  await rmdir(folder)
}

export const trashName = () => `${TRASH}${randomBytes(12).toString('hex')}`

export const isDigest = (name: string) => /^[0-9a-f]{64}$/.test(name)
