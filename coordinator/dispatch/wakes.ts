import type { Log } from '@windlass/shared/log.ts'
import type { Wake } from '@windlass/shared/wire/agent.ts'
import type { Db } from '../db/client.ts'
import type { Sockets } from '../agent-link/sockets.ts'
import { type Cursors, wakesFor } from '../engine/commit/wakes.ts'

type WakeDeps = { db: Db; sockets: Sockets; log: Log }

/** Frames in a row: some 8 MiB of results. What is beyond is said with a later heartbeat. */
const MOST_FRAMES = 32
/** What is longer goes alone. */
const SMALL_BYTES = 64 * 1024

const NOTHING: Cursors = new Map()

/**
 * Sends what its programs wait for to this runner, if it is connected here: one frame now, and each further one when
 * the one before was read, for which nobody waits. It is looked up once for all who ask while the look before has not
 * ended.
 */
export async function tellWakes(deps: WakeDeps, runnerId: string): Promise<void> {
  const isBusy = deps.sockets.isReadingLarge(runnerId)
  const cursors = isBusy ? NOTHING : await tellPage(deps, runnerId, { key: runnerId, cursors: NOTHING })
  if (cursors === undefined) return
  const { behind } = deps.sockets
  const underWay = behind.get(runnerId)
  if (underWay) underWay.isAgain = true
  else tellBehind(deps, runnerId, cursors).catch((error: unknown) => deps.log.warn('orders.failed', { error }))
}

/**
 * Sends refusals, which are small. Calls are acknowledged after that: a program that has returned ends by the
 * acknowledgement, and would miss them.
 */
export async function tellRefusals(deps: WakeDeps, runnerId: string): Promise<void> {
  await tellPage(deps, runnerId, { key: `${runnerId} refusals`, cursors: NOTHING, refusals: true })
}

/** Page after page. Whoever asks meanwhile has it begin again: what has come since may lie before what is told next. */
async function tellBehind(deps: WakeDeps, runnerId: string, from: Cursors): Promise<void> {
  const { behind } = deps.sockets
  const row = { isAgain: false }
  behind.set(runnerId, row)
  try {
    await tellRow(deps, runnerId, from)
    while (row.isAgain) {
      row.isAgain = false
      await tellRow(deps, runnerId, NOTHING)
    }
  } finally {
    behind.delete(runnerId)
  }
}

async function tellRow(deps: WakeDeps, runnerId: string, from: Cursors): Promise<void> {
  let cursors: Cursors | undefined = from
  for (let frames = 0; frames < MOST_FRAMES && cursors !== undefined; frames++) {
    await deps.sockets.largeRead(runnerId)
    cursors = await tellPage(deps, runnerId, { key: `${runnerId} behind`, cursors })
  }
}

interface PageAsk {
  /** Looks of the same are shared. */
  key: string
  cursors: Cursors
  refusals?: boolean
}

/** Answers with what was told by now, where there may be more; undefined: there is no more, or no agent. */
async function tellPage(deps: WakeDeps, runnerId: string, { key, ...ask }: PageAsk): Promise<Cursors | undefined> {
  const { db, sockets } = deps
  const orgId = sockets.orgOf(runnerId)
  if (orgId === undefined) return undefined
  return sockets.wakes.share(key, orgId, async () => {
    // It may have gone while others had their turns.
    if (sockets.orgOf(runnerId) === undefined) return undefined
    const { runs, cursors } = await wakesFor(db, runnerId, ask)
    if (runs.length === 0) return undefined
    const frame = { t: 'wake', runs } as const
    if (ask.refusals) sockets.tell(runnerId, frame)
    return ask.refusals || tellRuns(sockets, runnerId, runs) ? cursors : ask.cursors
  })
}

/** Tells at once what runs have got. False: it is not connected here, or reads something large just now. */
export function tellRuns(sockets: Sockets, runnerId: string, runs: Wake[]): boolean {
  const results = runs.flatMap(({ completions }) => completions)
  const bytes = results.reduce((sum, { result }) => sum + Buffer.byteLength(result), 0)
  const frame = { t: 'wake', runs } as const
  return bytes <= SMALL_BYTES ? sockets.tell(runnerId, frame) : sockets.tellLarge(runnerId, frame)
}
