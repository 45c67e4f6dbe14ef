/** What people decide about the work of a runner. Each verb has one meaning, and says the same when it is said again. */
import { Fault } from '@windlass/shared/errors.ts'
import type { RunnerId } from '@windlass/shared/ids.ts'
import type { OnDeadline, Runner } from '@windlass/shared/model/runner.ts'
import type { Acting } from '../actor.ts'
import { record } from '../audit/record.ts'
import { spread, type SpreadDeps, write } from './intake.ts'
import { presentRunner } from './read.ts'
import { findRunner } from './store.ts'
import * as store from './store-intake.ts'

export interface SteerAsk {
  runner: RunnerId
  reason: string
  epoch?: number | undefined
  /** By which the caller reaches us. */
  base: string
}

/** No new work. One that is being drained stays so: it has none either. */
export function cordonRunner(deps: SpreadDeps, caller: Acting, ask: SteerAsk): Promise<Runner> {
  const { reason } = ask
  const decide = (now: store.IntakeRow): store.IntakeChange | undefined => {
    if (now.state === 'draining') return now.byKind === 'caller' ? undefined : drainingAgain(now, caller, reason)
    const isSame = now.state === 'cordoned' && now.byKind === 'caller' && (reason === '' || reason === now.reason)
    return isSame ? undefined : { state: 'cordoned', ...by(caller), reason }
  }
  return steer(deps, caller, ask, { action: 'runners.cordon', decide })
}

/** An agent that drains as it stops would be open again after its next start. */
function drainingAgain(now: store.IntakeRow, caller: Acting, reason: string): store.IntakeChange {
  return { state: 'draining', ...by(caller), reason: reason || now.reason, deadlineMs: now.deadlineMs ?? undefined }
}

export interface DrainAsk extends SteerAsk {
  deadlineMs: number
  onDeadline: OnDeadline
}

/** No new work, and what is there comes to its end. Said again with another deadline, that one counts, from now on. */
export function drainRunner(deps: SpreadDeps, caller: Acting, ask: DrainAsk): Promise<Runner> {
  const { reason, deadlineMs, onDeadline } = ask
  const decide = (now: store.IntakeRow): store.IntakeChange | undefined => {
    const isSame =
      now.state === 'draining' &&
      now.byKind === 'caller' &&
      now.deadlineMs === deadlineMs &&
      now.onDeadline === onDeadline &&
      (reason === '' || reason === now.reason)
    // Once its time is up, the same again is a new drain.
    if (isSame && !now.deadlineIsOver) return undefined
    return { state: 'draining', ...by(caller), reason, deadlineMs, onDeadline }
  }
  return steer(deps, caller, ask, { action: 'runners.drain', decide })
}

/** Work again, whoever or whatever kept it from that. */
export function resumeRunner(deps: SpreadDeps, caller: Acting, ask: SteerAsk): Promise<Runner> {
  const decide = (now: store.IntakeRow): store.IntakeChange | undefined =>
    now.state === 'open' && !now.isQuarantined ? undefined : { state: 'open', ...by(caller), reason: ask.reason }
  return steer(deps, caller, ask, { action: 'runners.resume', decide })
}

export const by = (caller: Acting) => ({ byKind: 'caller', byName: caller.name }) as const

interface Verb {
  /** As the audit log has it. */
  action: string
  /** Undefined: there is nothing to change. */
  decide: (now: store.IntakeRow) => store.IntakeChange | undefined
}

async function steer(deps: SpreadDeps, caller: Acting, ask: SteerAsk, { action, decide }: Verb): Promise<Runner> {
  const { row, now, isChanged } = await deps.db.begin(async (tx) => {
    const now = await lockOwn(tx, caller, ask.runner)
    assertMayChange(now, ask)
    const next = decide(now)
    if (next) await record(tx, caller, await write(tx, action, { now, next }))
    // In the same transaction: the caller is answered his own epoch.
    const row = (await findRunner(tx, caller.orgId, ask.runner))!
    return { row, now, isChanged: next !== undefined }
  })
  if (isChanged) await spread(deps, now)
  return presentRunner(row, ask.base)
}

/** The row under lock, if the runner is one of the caller's org. */
export async function lockOwn(
  tx: Parameters<typeof store.lockIntake>[0],
  caller: Acting,
  runner: RunnerId,
): Promise<store.IntakeRow> {
  const now = await store.lockIntake(tx, runner)
  if (now?.orgId !== caller.orgId) throw new Fault('NOT_FOUND', { runner })
  return now
}

function assertMayChange(now: store.IntakeRow, { runner, epoch }: SteerAsk): void {
  if (now.state === 'revoked') throw new Fault('RUNNER_REVOKED', { runner })
  if (epoch === undefined || epoch === now.epoch) return
  throw new Fault(
    'CONFLICT',
    { path: 'epoch', epoch: now.epoch, state: now.state },
    `epoch: the runner is ${now.state} with the epoch ${now.epoch}, no longer ${epoch}. Look at it again, or leave \`epoch\` out.`,
  )
}
