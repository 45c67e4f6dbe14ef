import type { Log } from '@windlass/shared/log.ts'
import { probe } from '@windlass/shared/probe.ts'
import type { Db } from '../db/client.ts'
import * as store from './store.ts'

/** 10 s: a busy runner polls hundreds of times a second, and "online" asks for the last minute only. */
const NOTE_MS = 10_000
/** Runners beyond this number are looked through for those that are gone. */
const MANY_RUNNERS = 10_000
const GONE_MS = 60_000

/** Remembers when runners polled, in one statement for all of them. */
export interface Polls {
  note(runnerId: string): void
  close(): void
}

export function createPolls(db: Db, log: Log): Polls {
  let pending = new Set<string>()
  const notedAt = new Map<string, number>()
  let forgotAt = -Infinity
  let timer: NodeJS.Timeout | undefined

  function forgetGone(now: number) {
    forgotAt = now
    for (const [id, at] of notedAt) if (now - at > GONE_MS) notedAt.delete(id)
  }

  function write() {
    timer = undefined
    const ids = [...pending]
    pending = new Set()
    store.notePolls(db, ids).then(
      () => probe('polls.noted', {}),
      (error: unknown) => log.debug('polls.failed', { error }),
    )
  }

  return {
    note(runnerId) {
      const now = performance.now()
      if (now - (notedAt.get(runnerId) ?? -NOTE_MS) < NOTE_MS) return
      if (notedAt.size >= MANY_RUNNERS && now - forgotAt > NOTE_MS) forgetGone(now)
      notedAt.set(runnerId, now)
      pending.add(runnerId)
      timer ??= setTimeout(write, 50)
    },
    close: () => clearTimeout(timer),
  }
}
