import type { OrgId, RunId } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'
import { LOST_REASONS } from '@windlass/shared/model/lost-reasons.ts'
import type { Loss } from '@windlass/shared/model/run.ts'
import type { Config } from '../../config.ts'
import { isLockTimeout, mayPass } from '../../db/client.ts'
import type { TermsReader } from '../../workflows/terms.ts'
import { isOvertime } from './overtime.ts'
import { pulseLimitMs } from '../store/pulse.ts'
import * as placements from '../store/placements.ts'
import { lightAndLong, lightPieces } from './light-piece.ts'
import type { LongEnd, LongEnds } from './long-ends.ts'
import { type MoveDeps, moveRuns } from './move-runs.ts'
import { takeBack } from '../rules/transitions.ts'
import { lose } from '../rules/outcome.ts'
import { warmTerms } from './versions.ts'
import type { Moving } from '../rules/run.ts'

export interface LoseOptions {
  reason: string
  /** `unknown` where it is left out: until the runner is heard of again. */
  what?: Loss['what']
  /** See `Locking`; then it throws, and those that were lost by then stay lost. */
  lockMs?: number
  /** Which of the placements, seen again under lock, are to go. */
  isLost(placement: placements.PlacementRow): boolean
  /** Told of each that was taken away, after the commit. */
  onLost?(placement: placements.PlacementRow): void
}

/**
 * Takes runs away from processes that are not coming back. An offer that was never accepted goes back into the queue
 * without a word about attempts: nothing has been executed.
 */
export async function loseRuns(deps: LoseDeps, runIds: readonly string[], options: LoseOptions): Promise<number> {
  if (runIds.length === 0) return 0
  let count = 0
  for (const piece of await lightPieces(deps.db, runIds as RunId[])) {
    const moved = await loseOrPassOver(deps, piece, options)
    for (const { placement } of moved) options.onLost?.(placement)
    for (const { run } of moved) tellLost(deps, run, options)
    count += moved.length
  }
  return count
}

/** Lost behind whoever asks: those of one org, where others have their turns between them. */
export interface LosingBehind {
  orgId: OrgId
  runIds: readonly RunId[]
  /** Called when each of them is lost, or could not be at the last try: it is lost with its lease then. */
  onEnd: () => Promise<void>
}

/** An agent that connects waits so long for a run that somebody holds. */
const PATIENCE_MS = 2000

/** What fails behind its hello is tried so often: each try may wait for a lock as long as any transaction. */
const TRIES = 3

/**
 * The same for many runs: at once as many as fit into one transaction, and the others one piece after the other. So are
 * those of the first that somebody holds.
 */
export async function loseBehind(
  deps: LoseDeps & { longEnds: LongEnds },
  { orgId, runIds, onEnd }: LosingBehind,
  options: LoseOptions,
): Promise<void> {
  const {
    light: [first = [], ...others],
    long,
  } = await lightAndLong(deps.db, runIds)
  const held = await loseFree(deps, first, options)
  const pieces = [...others, ...[...held, ...long].map((id) => [id])]
  let left = pieces.length
  if (left === 0) return onEnd()
  const add = (runIds: readonly RunId[], tries: number) => {
    const end: LongEnd = { orgId, runIds, act: (ids) => attempt(ids, tries, end) }
    deps.longEnds.add(end)
  }
  const attempt = async (ids: RunId[], tries: number, end: LongEnd) => {
    try {
      await loseRuns(deps, ids, options)
    } catch (error) {
      const own = ids.filter((id) => deps.longEnds.isNewest(id, end))
      // Else the next lease that ends would tell another reason, which counts for another limit.
      if (tries < TRIES && own.length > 0) add(own, tries + 1)
      // Where a later hello has them as well, that one notes when they are lost.
      else if (own.length > 0 && --left === 0) await onEnd()
      throw error
    }
    if (--left === 0) await onEnd()
  }
  for (const piece of pieces) add(piece, 1)
}

/** Loses those that nobody holds for long. Answers the others. */
async function loseFree(deps: LoseDeps, runIds: readonly RunId[], options: LoseOptions): Promise<RunId[]> {
  if (await loseInTime(deps, runIds, options)) return []
  const free = await placements.unlocked(deps.db, runIds)
  if (!(await loseInTime(deps, free, options))) return [...runIds]
  const isFree = new Set(free)
  return runIds.filter((id) => !isFree.has(id))
}

async function loseInTime(deps: LoseDeps, runIds: readonly RunId[], options: LoseOptions): Promise<boolean> {
  try {
    await loseRuns(deps, runIds, { ...options, lockMs: PATIENCE_MS })
    return true
  } catch (error) {
    if (isLockTimeout(error)) return false
    throw error
  }
}

function tellLost({ log }: LoseDeps, run: Moving, { reason }: LoseOptions): void {
  const { id: runId, runnerId, attempt, status } = run
  log.warn('run.lost', { runId, runnerId, attempt, status, reason })
}

interface Moved {
  run: Moving
  placement: placements.PlacementRow
}

export type LoseDeps = { config: Config; versionTerms: TermsReader; log: Log } & MoveDeps

/** One run that cannot be taken away must not keep the others where they are lost. */
async function loseOrPassOver(deps: LoseDeps, runIds: readonly string[], options: LoseOptions): Promise<Moved[]> {
  try {
    return await loseThese(deps, runIds, options)
  } catch (error) {
    if (mayPass(error)) throw error
    if (runIds.length === 1) {
      deps.log.error('run.lost.failed', { runId: runIds[0], error })
      return []
    }
    const moved: Moved[] = []
    for (const id of runIds) moved.push(...(await loseOrPassOver(deps, [id], options)))
    return moved
  }
}

async function loseThese(deps: LoseDeps, runIds: readonly string[], options: LoseOptions): Promise<Moved[]> {
  await warmTerms(deps, runIds)
  return moveRuns(deps, { ids: runIds, lockMs: options.lockMs }, async (tx, runs) => {
    const found = await placements.recheck(tx, runIds, {
      offerMs: deps.config.offerMs,
      limitMs: pulseLimitMs(deps.config),
    })
    const moved: Moved[] = []
    const now = deps.databaseClock.now()
    for (const placement of found.values()) {
      const run = runs.get(placement.runId)
      if (!run || run.epoch !== placement.epoch || !options.isLost(placement)) continue
      const why = { ...reasonOf(placement, options), runner: run.runnerId }
      if (placement.accepted || !takeBack(run, now, notTaken(placement, options))) {
        const version = await deps.versionTerms.get(run.versionId, tx)
        // Not noted yet where its agent was out of reach: a next attempt would only be stopped.
        run.timedOut ||= isOvertime(run, version, now)
        lose(run, now, version, why)
      }
      moved.push({ run, placement })
    }
    return { moved: moved.map(({ run }) => run), answer: moved }
  })
}

/** A runner that was revoked lost its runs by that, whatever has shown it first. */
function reasonOf(placement: placements.PlacementRow, { reason, what = 'unknown' }: LoseOptions) {
  if (placement.isRevoked) return { what: 'operator', reason: LOST_REASONS.revoked } as const
  const hint =
    what === 'unknown' && placement.wasClosed ? '; its connection was closed there, as when an agent ends' : ''
  return { what, reason: `${reason}${hint}` }
}

const notTaken = ({ offerLate }: placements.PlacementRow, { reason }: LoseOptions) =>
  offerLate ? 'the offer was not accepted in time' : reason
