import type { RunnerId } from '@windlass/shared/ids.ts'
import type { Runner } from '@windlass/shared/model/runner.ts'
import type { Acting } from '../actor.ts'
import { record } from '../audit/record.ts'
import type { loseRuns } from '../engine/commit/lose.ts'
import { giveBackOffers, spread, type SpreadDeps, write } from './intake.ts'
import { presentRunner } from './read.ts'
import { by, lockOwn } from './steer.ts'
import { findRunner } from './store.ts'
import type { IntakeRow } from './store-intake.ts'

export type RevokeDeps = SpreadDeps & Parameters<typeof loseRuns>[0]

/**
 * For good. The agent is told, kills what it executes and reports that; what it does not report goes to others when its lease runs
 * out, and never while it may still execute. What it was offered and has not taken goes back at once.
 */
export async function revokeRunner(
  deps: RevokeDeps,
  caller: Acting,
  ask: { runner: RunnerId; reason: string; base: string },
): Promise<Runner> {
  const { row, now } = await deps.db.begin(async (tx) => {
    const now = await lockOwn(tx, caller, ask.runner)
    if (now.state !== 'revoked') {
      const next = { state: 'revoked', ...by(caller), reason: ask.reason } as const
      await record(tx, caller, await write(tx, 'runners.revoke', { now, next }))
    }
    return { row: (await findRunner(tx, caller.orgId, ask.runner))!, now }
  })
  if (now.state !== 'revoked') await shutOut(deps, now)
  return presentRunner(row, ask.base)
}

/** After it was committed that the runner is revoked. */
export async function shutOut(deps: RevokeDeps, runner: IntakeRow): Promise<void> {
  deps.log.warn('runner.revoked', { runnerId: runner.runnerId, runnerName: runner.name })
  await spread(deps, runner)
  // Where that fails, the offers run out by themselves.
  await giveBackOffers(deps, runner.runnerId, 'its runner was revoked').catch((error: unknown) =>
    deps.log.warn('runner.offers.kept', { runnerId: runner.runnerId, error }),
  )
}
