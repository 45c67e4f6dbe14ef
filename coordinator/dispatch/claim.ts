import type { Log } from '@windlass/shared/log.ts'
import type { OrgId } from '@windlass/shared/ids.ts'
import type { Placement } from '@windlass/shared/wire/agent.ts'
import type { Offers } from '@windlass/shared/wire/offers.ts'
import type { Config } from '../config.ts'
import type { Db } from '../db/client.ts'
import type { Dispatchers } from './dispatcher.ts'
import { ringRun } from '../events/ring.ts'
import type { Polls } from '../runners/polls.ts'
import { triggerOf } from '../engine/rules/run.ts'
import type { RunTokens } from '../runs/token.ts'
import type { RunVersions } from '../engine/commit/versions.ts'
import type { VariableSets } from '../environments/sets.ts'
import type { TermsReader } from '../workflows/terms.ts'
import type { RunnerIdentity } from '../actor.ts'
import { inlineJournals } from '../engine/commit/read-journal.ts'
import type { AnnounceDeps } from '../engine/commit/announce.ts'
import { endWithoutEnvironment } from '../engine/commit/environment-gone.ts'
import { offeredAmong } from '../engine/commit/acceptances.ts'
import { loseRuns } from '../engine/commit/lose.ts'
import { fittingOf } from './fitting.ts'
import type { Returns } from './returns.ts'
import type { Claimed } from '../engine/store/claim.ts'

type ClaimDeps = {
  db: Db
  dispatchers: Dispatchers
  versionTerms: TermsReader
  runVersions: RunVersions
  variableSets: VariableSets
  runTokens: RunTokens
  config: Config
  polls: Polls
  returns: Returns
  log: Log
} & AnnounceDeps

/**
 * Waits until there is work for this runner. Answers everything that executing it takes. Asked for no slots, it ends
 * the runner's other polls.
 */
export async function claimRuns(
  deps: ClaimDeps,
  runner: RunnerIdentity,
  ask: { slots: number; waitMs: number },
  gone: AbortSignal,
): Promise<Offers> {
  if (ask.slots === 0) {
    deps.dispatchers.withdraw(runner.poolId, runner.id)
    return NOTHING
  }
  deps.polls.note(runner.id)
  const patience = AbortSignal.any([gone, AbortSignal.timeout(ask.waitMs)])
  const given = await deps.dispatchers.poll(runner, ask.slots, patience)
  if (gone.aborted) {
    await giveBackUnheard(deps, given)
    return NOTHING
  }
  for (const run of given) ringRun(deps, { id: run.runId, orgId: run.orgId })
  const withoutEnvironment = given.filter((run) => run.hasNoEnvironment)
  // Where that fails, their offers run out, and they are claimed again.
  if (withoutEnvironment.length > 0)
    await endWithoutEnvironment(deps, withoutEnvironment).catch((error: unknown) =>
      deps.log.warn('run.environment.gone.failed', { error }),
    )
  const claimed = given.filter((run) => !run.hasNoEnvironment)
  const { offers, fitting } = await madeOf(deps, claimed)
  // It may have gone while these were made.
  const taken = hasGone(gone) ? 0 : fitting.count
  if (hasGone(gone)) await giveBackUnheard(deps, claimed)
  else if (taken < claimed.length) await giveBack(deps, claimed.slice(taken), 'it had no room in the answer to a poll')
  if (taken === 0) return NOTHING
  return { offers: offers.slice(0, taken), variableSets: fitting.variableSets }
}

/** Where they cannot be told, the runner is not to blame that it accepts none of them. */
async function madeOf(deps: ClaimDeps, claimed: readonly Claimed[]) {
  try {
    const journals = await inlineJournals(
      deps.db,
      claimed.filter((run) => run.entries > 0),
    )
    await deps.versionTerms.warm(claimed.map(({ versionId }) => versionId))
    const offers = await Promise.all(claimed.map((run) => offer(deps, run, journals.get(run.runId) ?? null)))
    return { offers, fitting: await fittingOf(deps.variableSets, offers) }
  } catch (error) {
    await giveBack(deps, claimed, 'what belongs to the offer could not be read')
    throw error
  }
}

const NOTHING: Offers = { offers: [], variableSets: {} }

/** For a second look: what comes between may change it. */
const hasGone = (gone: AbortSignal) => gone.aborted

/** Nobody hears of these. */
export function giveBackUnheard(
  deps: Parameters<typeof giveBack>[0] & { returns: Returns },
  given: readonly Claimed[],
): Promise<void> {
  const back = given.filter(({ orgId }) => deps.returns.take(orgId))
  return giveBack(deps, back, 'the agent was gone before it was told of the offer')
}

/** Where this fails, their offers run out. */
async function giveBack(
  deps: Parameters<typeof loseRuns>[0],
  given: readonly Claimed[],
  reason: string,
): Promise<void> {
  const epochs = new Map(given.map(({ runId, epoch }) => [runId, epoch]))
  await loseRuns(deps, [...epochs.keys()], {
    reason,
    isLost: ({ accepted, runId, epoch }) => !accepted && epochs.get(runId) === epoch,
  }).catch((error: unknown) => deps.log.warn('offers.unreturned', { runs: [...epochs.keys()], error }))
}

/**
 * Its slots were taken by runs that go on, or it is to take no work any more. It may name runs of others, and these are
 * not locked.
 */
export async function takeBackDeclined(
  deps: Parameters<typeof loseRuns>[0] & { returns: Returns },
  runner: Pick<RunnerIdentity, 'id' | 'orgId'>,
  declined: readonly Placement[],
): Promise<void> {
  const offered = await offeredAmong(deps.db, runner.id, declined)
  const epochs = new Map<string, number>(offered.filter(() => deps.returns.take(runner.orgId)))
  await loseRuns(deps, [...epochs.keys()], {
    reason: 'its agent could not take it after all',
    isLost: ({ accepted, runId, runnerId, epoch }) =>
      !accepted && runnerId === runner.id && epochs.get(runId) === epoch,
  })
}

async function offer(
  deps: {
    versionTerms: TermsReader
    runVersions: RunVersions
    runTokens: RunTokens
    config: Config
  },
  run: Claimed,
  journalText: string | null,
): Promise<Offers['offers'][number]> {
  deps.runVersions.note(run.runId, run.versionId)
  const [version, token] = await Promise.all([deps.versionTerms.get(run.versionId), deps.runTokens.mint(run)])
  return {
    run: run.runId,
    attempt: run.attempt,
    epoch: run.epoch,
    org: version.org,
    workflow: { slug: version.slug, version: version.version },
    environment: run.environment,
    trigger: triggerOf(run),
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
    journal: { entries: run.entries, forgotten: run.forgottenEntries, text: journalText },
    variables: run.variableSetId,
    secrets: run.hasSecrets,
    token,
  }
}

function reuseKey(orgId: OrgId, versionId: string, environment: string | null): string {
  return `${orgId}/${versionId}/${environment ?? ''}`
}
