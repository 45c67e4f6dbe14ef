import type { OrgId, PoolId, RunnerId } from '@windlass/shared/ids.ts'
import { isSuspended } from '@windlass/shared/model/run.ts'
import type { Offer } from '@windlass/shared/wire/agent.ts'
import type { RunnerIdentity } from '../actor.ts'
import type { Db } from '../db/client.ts'
import type { Deps } from '../deps.ts'
import { inlineJournals } from '../journal/read.ts'
import type { AnnounceDeps } from '../runs/announce.ts'
import { endHomeless } from './homeless.ts'
import * as store from './store.ts'

type ClaimDeps = Pick<
  Deps,
  'db' | 'dispatchers' | 'versions' | 'variableSets' | 'runTokens' | 'config' | 'polls' | 'log'
> &
  AnnounceDeps

/** Waits until there is work for this runner. Answers everything that executing it takes. */
export async function claimRuns(
  deps: ClaimDeps,
  runner: RunnerIdentity,
  ask: { slots: number; waitMs: number },
  gone: AbortSignal,
): Promise<Offer[]> {
  deps.polls.note(runner.id)
  const patience = AbortSignal.any([gone, AbortSignal.timeout(ask.waitMs)])
  const given = await deps.dispatchers.poll(runner.poolId, runner.id, ask.slots, patience)
  for (const run of given) deps.tails.ring(run.runId)
  for (const run of given) deps.bell.ring('run', run.runId)
  const homeless = given.filter((run) => run.isHomeless)
  // Where that fails, their offers run out, and they are claimed again.
  if (homeless.length > 0)
    await endHomeless(deps, homeless).catch((error: unknown) => deps.log.warn('run.homeless.failed', { error }))
  const claimed = given.filter((run) => !run.isHomeless)
  const journals = await inlineJournals(
    deps.db,
    claimed.filter((run) => run.entries > 0),
  )
  return Promise.all(claimed.map((run) => offer(deps, run, journals.get(run.runId) ?? null)))
}

async function offer(
  deps: Pick<Deps, 'versions' | 'variableSets' | 'runTokens' | 'config'>,
  run: store.Claimed,
  journalText: string | null,
): Promise<Offer> {
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
    outputBytes: deps.config.outputBytes,
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
 * What becomes of an acceptance. All but `late` were in time. `resuming`: the run continues, and more may have come for it since the
 * offer was made. `cancelling`: meanwhile somebody wants it to stop.
 */
export type Accepted = 'ours' | 'resuming' | 'cancelling' | 'late'

/** Makes offers into leases for all who accept at this moment. */
export async function commitAcceptances(db: Db, acceptances: store.Acceptance[], leaseMs: number): Promise<Accepted[]> {
  const taken = await store.accept(db, acceptances, leaseMs)
  return acceptances.map((one) => {
    const status = taken.get(store.placementKey(one.runId, one.epoch))
    if (!status) return 'late'
    if (status === 'cancelling') return 'cancelling'
    return isSuspended(status) ? 'resuming' : 'ours'
  })
}

/** Gives the next runs of a pool out, one to each taker. */
export function commitClaims(db: Db, poolId: PoolId, takers: RunnerId[], offerMs: number): Promise<store.Claimed[]> {
  return store.claim(db, poolId, takers, offerMs)
}
