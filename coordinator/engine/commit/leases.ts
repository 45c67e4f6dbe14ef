import type { OrgId } from '@windlass/shared/ids.ts'
import type { Log } from '@windlass/shared/log.ts'
import type { CancelOrder, IntakeNotice, Placement } from '@windlass/shared/wire/agent.ts'
import { pause } from '@windlass/shared/time.ts'
import type { Config } from '../../config.ts'
import type { RunTokens } from '../../runs/token.ts'
import type { Sockets } from '../../agent-link/sockets.ts'
import type { Returns } from '../../dispatch/returns.ts'
import type { TermsReader } from '../../workflows/terms.ts'
import type { RunnerIdentity } from '../../actor.ts'
import { type Db, isDeadlock, isLockTimeout, isStatementTimeout } from '../../db/client.ts'
import { LONG_MS } from '../../db/slow-commits.ts'
import type { AnnounceDeps } from './announce.ts'
import { loseBehind } from './lose.ts'
import type { LongEnds } from './long-ends.ts'
import * as store from '../store/placements.ts'
import * as leases from '../store/leases.ts'

export type { Beat } from '../store/leases.ts'

export interface Renewal {
  /** What the agent says it has and has not: it must kill it and forget it. */
  stale: Placement[]
  cancel: CancelOrder[]
}

export interface Beaten extends Renewal {
  intake: IntakeNotice | undefined
}

/** Heartbeats of many agents: each renews the leases of everything that its agent executes. */
export async function commitBeats(
  deps: { db: Db; versionTerms: TermsReader },
  beats: leases.Beat[],
): Promise<Beaten[]> {
  const possible = await withoutStale(deps.db, beats)
  const rows = await leases.beat(deps.db, possible)
  const runners = new Map(rows.filter((row) => row.runId === null).map((row) => [row.runnerId, row]))
  const renewed = Map.groupBy(
    rows.filter((row) => row.runId !== null),
    (row) => row.runnerId,
  )
  const passedOver = possible.flatMap((beat) => {
    const holds = staleAmong(beat.holds, renewed.get(beat.runnerId) ?? [])
    return holds.length > 0 ? [{ ...beat, holds }] : []
  })
  for (const row of await renewPassedOver(deps.db, passedOver)) {
    const before = renewed.get(row.runnerId)
    if (before) before.push(row)
    else renewed.set(row.runnerId, [row])
  }
  const asked = [...renewed.values()].flat().filter(isToBeStopped)
  // Together: each for itself had a statement of its own.
  await deps.versionTerms.warm(asked.map(({ versionId }) => versionId))
  return Promise.all(
    beats.map(async ({ runnerId, holds }) => {
      const theirs = renewed.get(runnerId) ?? []
      const intake = noticeOf(runners.get(runnerId))
      return { stale: staleAmong(holds, theirs), cancel: await cancelOrders(deps, theirs), intake }
    }),
  )
}

/**
 * Most who hold a placement do so for some milliseconds, and many of them end it. Long for a commit, so that an org of
 * which one is held commits alone from then on.
 */
const HELD_MS = LONG_MS + 100
/** Of many that are held one after the other. */
const ALL_HELD_MS = 2000

/**
 * Renews what was passed over, in a statement of its own: it may be gone, or somebody holds it. Where that takes long,
 * the renewal is noted beside the placement, and the agent may go on with all its runs.
 */
async function renewPassedOver(db: Db, beats: readonly leases.Beat[]): Promise<leases.RenewedRow[]> {
  if (beats.length === 0) return []
  try {
    return await db.begin(async (tx) => {
      await tx`
        select set_config('lock_timeout', ${String(HELD_MS)}, true),
               set_config('statement_timeout', ${String(ALL_HELD_MS)}, true)`
      return leases.renew(tx, beats)
    })
  } catch (error) {
    if (!isLockTimeout(error) && !isStatementTimeout(error) && !isDeadlock(error)) throw error
    return leases.renewHeld(db, beats)
  }
}

/** More than most agents ever hold. */
const MANY_HOLDS = 256

/**
 * Leaves out of long lists what was never given to the agent: it may name 16,384 placements of its own invention, each
 * of which would be looked for by itself. What it was given was committed before it heard of it, and so is seen here.
 */
async function withoutStale(db: Db, beats: readonly leases.Beat[]): Promise<readonly leases.Beat[]> {
  const long = beats.filter(({ holds }) => holds.length > MANY_HOLDS).map(({ runnerId }) => runnerId)
  if (long.length === 0) return beats
  const given = await leases.givenTo(db, long)
  return beats.map((beat) => {
    if (beat.holds.length <= MANY_HOLDS) return beat
    const own = given.get(beat.runnerId)
    return { ...beat, holds: beat.holds.filter(([run, epoch]) => own?.has(store.placementKey(run, epoch))) }
  })
}

function noticeOf(row: leases.RunnerRow | undefined): IntakeNotice | undefined {
  if (!row) return undefined
  const { intakeState: state, intakeEpoch: epoch, intakeReason: reason, deadlineAt } = row
  return { state, epoch, reason, deadlineAt: deadlineAt?.getTime() ?? null }
}

const FORGOTTEN = 'its agent was started again and does not know it any more'
const RESTORED = 'the database was restored, and its agent executed it as it had been before'
const UNHEARD = 'its agent is connected again and has not heard of it'

export interface Reconciled extends Beaten {
  /** Up to where the entries of each run have been taken. */
  resume: { run: string; epoch: number; seq: number }[]
  /** Placements that the database gave to it. */
  held: number
}

interface Reconciling {
  at: number
  what: 'network' | 'daemon' | 'host' | 'operator'
  /** Called when all that was lost has been ended, which may be after the answer. */
  onEnd: () => Promise<void>
}

/**
 * Brings agent and database to one mind when the agent connects. What the database gives to it and it does not know of is
 * lost: the agent was started again, or the answer to its poll never arrived. The rest is renewed before the agent hears for how
 * long it may be silent from now on. What was given out, taken or renewed after `at`, when its connection was
 * opened, may have come over a later one, and this one knows nothing of it. Of many lost runs, or of long journals,
 * most are ended after that.
 */
export async function reconcile(
  deps: {
    db: Db
    config: Config
    versionTerms: TermsReader
    log: Log
    longEnds: LongEnds
    returns: Returns
  } & AnnounceDeps,
  { runnerId, orgId, holds, leaseMs }: leases.Beat & { orgId: OrgId },
  { at, what, onEnd }: Reconciling,
): Promise<Reconciled> {
  const mine = new Set(holds.map(([run, epoch]) => store.placementKey(run, epoch)))
  const held = await store.heldBy(deps.db, runnerId)
  const isKnown = (row: store.Held) => mine.has(store.placementKey(row.runId, row.epoch))
  const known = held.filter(isKnown)
  // Offers beyond the share of the org run out by themselves.
  const lost = held.filter((row) => !isKnown(row) && (row.accepted || deps.returns.take(orgId)))
  const gone = new Set(lost.map((row) => store.placementKey(row.runId, row.epoch)))
  await loseBehind(
    deps,
    { orgId, runIds: lost.map((row) => row.runId), onEnd },
    {
      reason: { network: UNHEARD, operator: RESTORED, daemon: FORGOTTEN, host: FORGOTTEN }[what],
      what,
      isLost: ({ runId, epoch, touchedAt }) => touchedAt <= at && gone.has(store.placementKey(runId, epoch)),
    },
  )
  const [beaten] = await commitBeats(deps, [{ runnerId, holds, leaseMs }])
  const resume = known.map((row) => ({ run: row.runId, epoch: row.epoch, seq: row.seq }))
  return { ...beaten!, resume, held: held.length }
}

/** Tokens that are minted in one turn of the event loop, at 35 µs each. */
const TOKENS_AT_ONCE = 50
/** A piece is followed by a rest of so many times its length: an org has a fifth of the event loop for its tokens. */
const REST = 4

/** New tokens for those of these runs that the runner really executes, piece by piece; at least one piece. */
export async function* renewTokens(
  { db, runTokens, sockets }: { db: Db; runTokens: RunTokens; sockets: Pick<Sockets, 'pace'> },
  { id: runnerId, orgId }: RunnerIdentity,
  runs: readonly Placement[],
): AsyncGenerator<{ run: string; epoch: number; token: string }[]> {
  const accepted = (await store.among(db, runnerId, runs)).filter((row) => row.accepted)
  for (let from = 0; from === 0 || from < accepted.length; from += TOKENS_AT_ONCE) {
    await sockets.pace.next(orgId)
    const startedAt = performance.now()
    yield await Promise.all(
      accepted.slice(from, from + TOKENS_AT_ONCE).map(async ({ runId, epoch }) => ({
        run: runId,
        epoch,
        token: await runTokens.mint({ runId, epoch, orgId, runnerId }),
      })),
    )
    if (from + TOKENS_AT_ONCE < accepted.length) await pause(REST * (performance.now() - startedAt))
  }
}

/** Sends what is to be cancelled to those of these runners that are connected here. */
export async function tellCancels(
  deps: { db: Db; versionTerms: TermsReader; sockets: Sockets },
  runnerIds: readonly string[],
): Promise<void> {
  const byRunner = Map.groupBy(await store.toCancel(deps.db, runnerIds), (row) => row.runnerId)
  for (const [runnerId, rows] of byRunner)
    deps.sockets.tell(runnerId, { t: 'cancel', runs: await cancelOrders(deps, rows) })
}

/** The orders for those of these runs that the runner executes and that are to be cancelled. */
export async function cancelsAmong(
  deps: { db: Db; versionTerms: TermsReader },
  runnerId: RunnerIdentity['id'],
  runs: readonly Placement[],
): Promise<CancelOrder[]> {
  const runIds = runs.map(([run]) => run)
  return cancelOrders(deps, await store.toCancelAmong(deps.db, runnerId, runIds))
}

function staleAmong(holds: readonly Placement[], known: readonly { runId: string; epoch: number }[]): Placement[] {
  const alive = new Set(known.map((row) => store.placementKey(row.runId, row.epoch)))
  return holds.filter(([run, epoch]) => !alive.has(store.placementKey(run, epoch)))
}

const isToBeStopped = ({ status, timedOut }: store.Renewed) => status === 'cancelling' || timedOut

/** The runs among these that are to be stopped, each with the grace of its descriptor. */
async function cancelOrders(
  { versionTerms }: { versionTerms: TermsReader },
  rows: readonly store.Renewed[],
): Promise<CancelOrder[]> {
  const asked = rows.filter(isToBeStopped)
  await versionTerms.warm(asked.map(({ versionId }) => versionId))
  return Promise.all(
    asked.map(async (row) => ({
      run: row.runId,
      epoch: row.epoch,
      why: row.status === 'cancelling' ? ('cancelled' as const) : ('timed-out' as const),
      reason: row.cancelReason ?? '',
      graceMs: (await versionTerms.get(row.versionId)).descriptor.cancelGraceMs,
    })),
  )
}
