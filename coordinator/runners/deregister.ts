import { Fault } from '@windlass/shared/errors.ts'
import type { RunnerId } from '@windlass/shared/ids.ts'
import type { Acting } from '../actor.ts'
import { record } from '../audit/record.ts'
import { write } from './intake.ts'
import { type RevokeDeps, shutOut } from './revoke.ts'
import { by, lockOwn } from './steer.ts'
import { findRunner, type RunnerRow } from './store.ts'
import { type IntakeRow, markDeregistered } from './store-intake.ts'

/**
 * Forgets a runner: only the runs that it had still name it. It is revoked with that, so that an agent that comes back later is told.
 * By force whatever it has goes the way of a revoked runner's.
 */
export async function deregisterRunner(
  deps: RevokeDeps,
  caller: Acting,
  ask: { runner: RunnerId; force: boolean },
): Promise<void> {
  const now = await deps.db.begin(async (tx) => {
    const now = await lockOwn(tx, caller, ask.runner)
    const row = (await findRunner(tx, caller.orgId, ask.runner))!
    if (!ask.force) assertIdle(now, row)
    const next = { state: 'revoked', ...by(caller), reason: 'it was deregistered' } as const
    const { target, before } = await write(tx, 'runners.deregister', { now, next })
    await markDeregistered(tx, ask.runner)
    const was = { ...before, pool: row.poolName, ...countsOf(row) }
    await record(tx, caller, { action: 'runners.deregister', target, before: was, after: { force: ask.force } })
    return now
  })
  await shutOut(deps, now)
}

const countsOf = ({ offered, executing, parked }: RunnerRow) => ({ offered, executing, parked })

function assertIdle(now: IntakeRow, row: RunnerRow): void {
  const held = row.offered + row.executing + row.parked
  const isOnline = row.online && now.state !== 'revoked'
  if (held === 0 && !isOnline) return
  const detail = { runner: now.runnerId, online: row.online, state: now.state, ...countsOf(row) }
  const runs = held === 1 ? '1 run' : `${held} runs`
  const why = held > 0 ? `has ${runs}` : 'is online'
  const wayOut = isOnline
    ? 'Drain it and stop its agent, or use `force`, which revokes it.'
    : 'Wait until they have gone to others, or use `force`.'
  throw new Fault('RUNNER_BUSY', detail, `The runner \`${now.name}\` ${why}. ${wayOut}`)
}
