import { atMost, pause } from '@windlass/shared/time.ts'
import type { Uids } from './uids.ts'
import { removeTraces } from './user-traces.ts'

/** Looking takes this part of one core, unless it would rest for longer than that. */
const SHARE = 1 / 5
const MOST_REST_MS = 10_000
const CLOSE_MS = 2_000

/**
 * Users whose last process is gone. Each is in use until what it has left is gone too, for which nobody waits: a look
 * for that takes as long as all others on the machine like, who may put a million files where it looks. One look at a
 * time serves all users that were done before it began.
 */
export class FormerUsers {
  readonly #uids: Uids
  readonly #onStay: (users: number[]) => void
  readonly #remove: typeof removeTraces
  readonly #closing = new AbortController()
  #next = new Set<number>()
  /** Something of them could not be removed: they are tried again when others are looked after, or none is free. */
  #failed = new Set<number>()
  #looking: Promise<void> | undefined
  #underWay: Promise<void> | undefined
  #waiting: (() => void)[] = []

  /** `onStay` hears of users of whom something stays, after each look that has added to them. */
  constructor(uids: Uids, onStay: (users: number[]) => void, remove = removeTraces) {
    this.#uids = uids
    this.#onStay = onStay
    this.#remove = remove
  }

  forget(...uids: readonly number[]): void {
    for (const uid of uids) this.#next.add(uid)
    this.#looking ??= this.#lookOnAndOn()
  }

  /** Resolves when the look that is under way has ended. */
  async looked(): Promise<void> {
    await this.#underWay
  }

  /** Resolves when there is a user to take, in turns; when none is, after a look that has made none free. */
  async userFree(): Promise<void> {
    if (this.#uids.areAllUsed() && this.#failed.size > 0 && !this.#looking) {
      this.#next = new Set(this.#failed)
      this.#looking = this.#lookOnAndOn()
    }
    while (this.#uids.areAllUsed() && this.#looking) await new Promise<void>((resolve) => this.#waiting.push(resolve))
  }

  /** Those that are left over are forgotten when the next agent begins. */
  async close(): Promise<void> {
    this.#closing.abort()
    if (this.#looking) await atMost(CLOSE_MS, this.#looking)
  }

  async #lookOnAndOn(): Promise<void> {
    while (this.#next.size > 0) {
      const began = performance.now()
      this.#underWay = this.#look()
      await this.#underWay
      const restMs = Math.min(MOST_REST_MS, (performance.now() - began) * (1 / SHARE - 1))
      await pause(restMs, this.#closing.signal)
    }
    this.#looking = undefined
    for (const wake of this.#waiting.splice(0)) wake()
  }

  async #look(): Promise<void> {
    const users = new Set([...this.#next, ...this.#failed])
    this.#next = new Set()
    const isStaying = await this.#remove((uid) => users.has(uid))
    const failed = [...users].filter(isStaying)
    if (failed.some((uid) => !this.#failed.has(uid))) this.#onStay(failed)
    this.#failed = new Set(failed)
    for (const uid of users) if (!isStaying(uid)) this.#give(uid)
  }

  #give(uid: number): void {
    this.#uids.give(uid)
    this.#waiting.shift()?.()
  }
}
