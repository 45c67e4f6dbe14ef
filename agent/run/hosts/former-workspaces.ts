import { randomBytes } from 'node:crypto'
import { once } from 'node:events'
import fs from 'node:fs/promises'
import path from 'node:path'
import { probe } from '@windlass/shared/probe.ts'
import { atMost, pause } from '@windlass/shared/time.ts'
import { ASIDE, removeTree, takeFromUser } from '../../os/remove-tree.ts'

/** Calls at a time. Threads of the pool would wait for one another in one folder, and the start needs them. */
const AT_ONCE = 4
const LOOK_MS = 100
const CLOSE_MS = 2_000

/**
 * What agents before this one have left in the folder of workspaces. A program may have made millions of files, which
 * take minutes to remove: a start sets them aside, with one call for each workspace, and goes on. What is not removed
 * when the agent ends is known to the next one by its name.
 */
export class FormerWorkspaces {
  readonly #root: string
  readonly #onStay: (folder: string, error: unknown) => void
  readonly #closing = new AbortController()
  /** Names that were set aside by this agent. */
  readonly #known = new Set<string>()
  /** Of those what could not be removed: tried once more, as there may be more room by then. */
  readonly #stayed = new Set<string>()
  readonly #queue: string[] = []
  #isLater = false
  #removing: Promise<void> | undefined

  /** `onStay` hears of what cannot be removed, as a folder in it belongs to somebody else: it is in nobody's way. */
  constructor(root: string, onStay: (folder: string, error: unknown) => void) {
    this.#root = root
    this.#onStay = onStay
  }

  /** Everything but these names is removed from now on. A later call adds what an earlier one was to spare. */
  async setAside(except: readonly string[] = []): Promise<void> {
    await fs.mkdir(this.#root, { recursive: true, mode: 0o700 })
    const names = (await fs.readdir(this.#root)).filter((name) => !except.includes(name) && !this.#known.has(name))
    // Later such a folder is one in which something is being removed.
    const isFormer = (name: string) => !this.#isLater || !name.startsWith(ASIDE) || this.#stayed.delete(name)
    const found = names.filter(isFormer)
    this.#isLater = true
    const aside = await Promise.all(found.map((name) => this.#moveAside(name)))
    for (const name of aside) this.#known.add(name)
    this.#queue.push(...aside)
    this.#removing ??= this.#queue.length > 0 ? this.#removeAll() : undefined
  }

  /** Waits for a part of the removal, as long as there is no room; for nothing where nothing is left to remove. */
  async untilRoom(hasRoom: () => Promise<boolean>, signal: AbortSignal): Promise<void> {
    while (this.#removing && !signal.aborted && !(await hasRoom()))
      await Promise.race([this.#removing, pause(LOOK_MS, signal)])
  }

  /** Resolves when nothing is being removed any more, with whether that was brought to its end. */
  async removed(): Promise<boolean> {
    const { signal } = this.#closing
    // A call may hang in the kernel, for which no stop waits.
    while (this.#removing && !signal.aborted) await Promise.race([this.#removing, once(signal, 'abort')])
    return !signal.aborted
  }

  /** Stops a removal in its midst: the next agent goes on with it. */
  async close(): Promise<void> {
    this.#closing.abort()
    if (this.#removing) await atMost(CLOSE_MS, this.#removing)
  }

  /** Answers its new name. Neither call follows a link, and nobody can guess the name who may not list the folder. */
  async #moveAside(name: string): Promise<string> {
    const target = name.startsWith(ASIDE) ? name : `${ASIDE}${randomBytes(12).toString('hex')}`
    const folder = path.join(this.#root, target)
    try {
      if (target !== name) await fs.rename(path.join(this.#root, name), folder)
    } catch {
      // Such as a mount. The removal says so.
      return name
    }
    // The next user with that number must not get into it. What is no folder needs no more.
    await takeFromUser(folder).catch(() => {})
    return target
  }

  /** One at a time. */
  async #removeAll(): Promise<void> {
    const { signal } = this.#closing
    for (let name = this.#queue.shift(); name !== undefined && !signal.aborted; name = this.#queue.shift()) {
      const folder = path.join(this.#root, name)
      try {
        await removeTree(folder, { atOnce: AT_ONCE, signal })
      } catch (error) {
        if (signal.aborted) continue
        this.#known.delete(name)
        this.#stayed.add(name)
        this.#onStay(folder, error)
      }
      probe('workspace.removed', { folder })
    }
    this.#removing = undefined
  }
}
