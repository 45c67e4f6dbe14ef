import type { OrgId, PoolId } from '@windlass/shared/ids.ts'
import { isSuspended } from '@windlass/shared/model/run.ts'
import type { Offer, Placement } from '@windlass/shared/wire/agent.ts'
import type { RunnerIdentity } from '../actor.ts'
import type { Db } from '../db/client.ts'
import type { Deps } from '../deps.ts'
import { inlineJournals } from '../journal/read.ts'
import { noteAccepted } from '../runners/intake.ts'
import type { AnnounceDeps } from '../runs/announce.ts'
import { endWithoutEnvironment } from './environment-gone.ts'
import { loseRuns } from './lose.ts'
import type { Pair } from '../matching/candidate.ts'
import { match } from '../matching/match.ts'
import * as store from './store.ts'
import * as claims from './store-claim.ts'
import * as waiting from './store-lines.ts'

type ClaimDeps = Pick<
  Deps,
  'db' | 'dispatchers' | 'versions' | 'runVersions' | 'variableSets' | 'runTokens' | 'config' | 'polls' | 'log'
> &
  AnnounceDeps

/**
 * Waits until there is work for this runner. Answers everything that executing it takes. Asked for no slots, it ends
 * the runner's other polls.
 */
export async function claimRuns(
  deps: ClaimDeps,
  runner: RunnerIdentity,
  ask: { slots: number; waitMs: number },
  gone: AbortSignal,
): Promise<Offer[]> {
  if (ask.slots === 0) {
    deps.dispatchers.withdraw(runner.poolId, runner.id)
    return []
  }
  deps.polls.note(runner.id)
  const patience = AbortSignal.any([gone, AbortSignal.timeout(ask.waitMs)])
  const given = await deps.dispatchers.poll(runner.poolId, runner.id, ask.slots, patience)
  if (gone.aborted) {
    await giveBack(deps, given)
    return []
  }
  for (const run of given) deps.tails.ring(run.runId)
  for (const run of given) deps.bell.ring('run', run.runId)
  const withoutEnvironment = given.filter((run) => run.hasNoEnvironment)
  // Where that fails, their offers run out, and they are claimed again.
  if (withoutEnvironment.length > 0)
    await endWithoutEnvironment(deps, withoutEnvironment).catch((error: unknown) =>
      deps.log.warn('run.environment.gone.failed', { error }),
    )
  const claimed = given.filter((run) => !run.hasNoEnvironment)
  const journals = await inlineJournals(
    deps.db,
    claimed.filter((run) => run.entries > 0),
  )
  const offers = await Promise.all(claimed.map((run) => offer(deps, run, journals.get(run.runId) ?? null)))
  // It may have gone while these were made.
  if (!hasGone(gone)) return offers
  await giveBack(deps, claimed)
  return []
}

/** For a second look: what comes between may change it. */
const hasGone = (gone: AbortSignal) => gone.aborted

/** Nobody is there any more to hear of these. Where this fails, their offers run out. */
export async function giveBack(deps: Parameters<typeof loseRuns>[0], given: readonly claims.Claimed[]): Promise<void> {
  const epochs = new Map(given.map(({ runId, epoch }) => [runId, epoch]))
  await loseRuns(deps, [...epochs.keys()], {
    reason: 'the agent was gone before it was told of the offer',
    isLost: ({ accepted, runId, epoch }) => !accepted && epochs.get(runId) === epoch,
  }).catch((error: unknown) => deps.log.warn('offers.unreturned', { runs: [...epochs.keys()], error }))
}

/** Its slots were taken by runs that go on, or it is to take no work any more. */
export async function takeBackDeclined(
  deps: Parameters<typeof loseRuns>[0],
  runner: Pick<RunnerIdentity, 'id'>,
  declined: readonly Placement[],
): Promise<void> {
  const epochs = new Map<string, number>(declined)
  await loseRuns(deps, [...epochs.keys()], {
    reason: 'its agent could not take it after all',
    isLost: ({ accepted, runId, runnerId, epoch }) =>
      !accepted && runnerId === runner.id && epochs.get(runId) === epoch,
  })
}

async function offer(
  deps: Pick<Deps, 'versions' | 'runVersions' | 'variableSets' | 'runTokens' | 'config'>,
  run: claims.Claimed,
  journalText: string | null,
): Promise<Offer> {
  deps.runVersions.note(run.runId, run.versionId)
  const [version, variables, token] = await Promise.all([
    deps.versions.get(run.versionId),
    deps.variableSets.get(run.variableSetId),
    deps.runTokens.mint(run),
  ])
  return {
    run: run.runId,
    attempt: run.attempt,
    epoch: run.epoch,
    org: version.org,
    workflow: { slug: version.slug, version: version.version },
    environment: run.environment,
    inputText: run.input,
    bundle: { digest: version.bundleDigest, bytes: version.bundleBytes },
    process: version.descriptor.process,
    slots: version.descriptor.slots,
    reuseKey: reuseKey(run.orgId, run.versionId, run.environment),
    // 1: what is used up ends in the agent, as a timeout like any other.
    timeoutMs: Math.max(1, Math.round(version.descriptor.timeoutMs - run.activeMs)),
    graceMs: version.descriptor.cancelGraceMs,
    outputBytes: deps.config.maxOutputBytes,
    eventDataBytes: deps.config.maxEventDataBytes,
    replay: run.isResume,
    journal: { entries: run.entries, text: journalText },
    variables,
    secrets: run.hasSecrets,
    token,
  }
}

function reuseKey(orgId: OrgId, versionId: string, environment: string | null): string {
  return `${orgId}/${versionId}/${environment ?? ''}`
}

/**
 * What becomes of an acceptance. All but `late` were in time. `resuming`: the run continues, and more may have come for
 * it since the offer was made. `cancelling`: meanwhile somebody wants it to stop.
 */
export type Accepted = 'ours' | 'resuming' | 'cancelling' | 'late'

/** Makes offers into leases for all who accept at this moment. */
export async function commitAcceptances(db: Db, acceptances: store.Acceptance[]): Promise<Accepted[]> {
  const { statuses, unaccepted } = await store.accept(db, acceptances)
  if (unaccepted.length > 0) await noteAccepted({ db }, unaccepted)
  return acceptances.map((one) => {
    const status = statuses.get(store.placementKey(one.runId, one.epoch))
    if (!status) return 'late'
    if (status === 'cancelling') return 'cancelling'
    return isSuspended(status) ? 'resuming' : 'ours'
  })
}

/** Runs given out in one statement. */
export const MOST_CLAIMED = 256
/** The first runs of a line that are looked at in one go, when there are few lines; of many lines fewer each. */
const LOOKED_AT = 512
const LEAST_EACH = 8
/** A run that needs more than is ever free at once has a runner kept for it, once it has waited for so long. */
const OLD_MS = 30_000
/** Others may have been faster. */
const TRIES = 3

export interface ClaimAnswer {
  claimed: claims.Claimed[]
  /** It is worth looking again at once. */
  isMore: boolean
}

/**
 * Gives the next runs of a pool out, one to each share of a taker; where labels or slots are asked for, to those who
 * have them.
 */
export async function commitClaims(
  db: Db,
  poolId: PoolId,
  takers: claims.Taker[],
  offerMs: number,
): Promise<ClaimAnswer> {
  const most = Math.min(
    MOST_CLAIMED,
    takers.reduce((sum, { share }) => sum + share, 0),
  )
  const { claimed, isMixed, isMissed, isCut } = await claims.claimPlain(db, poolId, { takers, most }, offerMs)
  if (!isMixed) return { claimed, isMore: isMissed || isCut || claimed.length === most }
  for (let i = 0; i < TRIES; i++) {
    const pairs = await planClaims(db, poolId, takers)
    if (pairs.length === 0) break
    const given = await claims.claimPairs(db, poolId, pairs, offerMs)
    if (given.length > 0) return { claimed: given, isMore: true }
  }
  return { claimed: [], isMore: false }
}

/** Which runs fit which of these runners. Nothing is locked: the claim looks again. */
async function planClaims(db: Db, poolId: PoolId, takers: readonly claims.Taker[]): Promise<Pair[]> {
  const free = new Map(takers.map(({ runnerId, slots }) => [runnerId, slots]))
  const [needs, found] = await Promise.all([
    waiting.lines(db, poolId),
    waiting.candidates(db, poolId, [...free.keys()]),
  ])
  const seekers = found.map((one) => ({ ...one, free: free.get(one.runnerId)! }))
  const most = seekers.reduce((sum, one) => sum + one.free, 0)
  const each = Math.max(LEAST_EACH, Math.min(most, Math.floor(LOOKED_AT / Math.max(1, needs.length))))
  const heads = await waiting.queueHeads(db, poolId, { needs, each, oldMs: OLD_MS })
  const ask = { heads, seekers, each, most: MOST_CLAIMED }
  const plan = match(ask)
  if (!plan.isStarving) return plan.pairs
  return match({ ...ask, workers: await waiting.workers(db, poolId) }).pairs
}
