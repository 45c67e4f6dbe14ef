import type { Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'
import type { Wake } from '@windlass/shared/wire/agent.ts'
import type { Db } from '../db/client.ts'
import type { Sockets } from '../agent-link/sockets.ts'
import { charsOf, wakesFor } from '../engine/commit/wakes.ts'

type WakeDeps = { db: Db; sockets: Sockets; log: Log }

/** Frames in a row: some 8 MiB of results. What is beyond is said with a later heartbeat. */
const MOST_FRAMES = 32
/** What is longer goes alone. */
const SMALL_CHARS = 64 * 1024
/** Over a slow line all takes minutes, and an agent that is not welcomed executes nothing. */
const ALL_MS = 10_000

/**
 * Sends what its programs wait for to this runner, if it is connected here: one frame now, and each further one when
 * the one before was read, for which nobody waits. It is looked up once for all who ask while the look before has not
 * ended.
 */
export async function tellWakes(deps: WakeDeps, runnerId: string): Promise<void> {
  const after = deps.sockets.isReadingLarge(runnerId) ? 0 : await tellFrom(deps, runnerId, 0)
  if (after === undefined) return
  tellOn(deps, runnerId, after).catch((error: unknown) => deps.log.warn('orders.failed', { error }))
}

/** The same, for whoever waits until all is told, or for some seconds. */
export async function tellAllWakes(deps: WakeDeps, runnerId: string): Promise<void> {
  const over = new AbortController()
  try {
    await Promise.race([tellOn(deps, runnerId, 0), pause(ALL_MS, over.signal)])
  } finally {
    over.abort()
  }
}

/** Frame after frame, behind this completion. Where that is under way already, it begins again at the first one. */
function tellOn(deps: WakeDeps, runnerId: string, after: number): Promise<void> {
  const { behind } = deps.sockets
  const underWay = behind.get(runnerId)
  if (underWay) {
    underWay.isAgain = true
    return underWay.ended
  }
  const telling = { isAgain: false, ended: Promise.resolve() }
  const tell = async () => {
    try {
      await tellBehind(deps, runnerId, after)
      while (telling.isAgain) {
        telling.isAgain = false
        await tellBehind(deps, runnerId, 0)
      }
    } finally {
      behind.delete(runnerId)
    }
  }
  behind.set(runnerId, telling)
  telling.ended = tell()
  return telling.ended
}

async function tellBehind(deps: WakeDeps, runnerId: string, from: number): Promise<void> {
  let after: number | undefined = from
  for (let frames = 0; frames < MOST_FRAMES && after !== undefined; frames++) {
    await deps.sockets.largeRead(runnerId)
    after = await tellFrom(deps, runnerId, after)
  }
}

/**
 * Answers with the completion behind which there may be more to tell; undefined: there is nothing, or no agent. Looks
 * that begin at the same completion are shared.
 */
async function tellFrom(deps: WakeDeps, runnerId: string, after: number): Promise<number | undefined> {
  const { db, sockets } = deps
  const orgId = sockets.orgOf(runnerId)
  if (orgId === undefined) return undefined
  return sockets.wakes.share(after === 0 ? runnerId : `${runnerId} ${after}`, orgId, async () => {
    // It may have gone while others had their turns.
    if (sockets.orgOf(runnerId) === undefined) return undefined
    const { runs, last } = await wakesFor(db, runnerId, after)
    if (runs.length === 0) return undefined
    return tellRuns(sockets, runnerId, runs) ? last : after
  })
}

/** Tells at once what one run has got. False: it is not connected here, or reads something large just now. */
export function tellRuns(sockets: Sockets, runnerId: string, runs: Wake[]): boolean {
  const chars = runs.reduce((sum, { completions }) => sum + charsOf(completions), 0)
  const frame = { t: 'wake', runs } as const
  return chars <= SMALL_CHARS ? sockets.tell(runnerId, frame) : sockets.tellLarge(runnerId, frame)
}
