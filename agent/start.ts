import { realpath } from 'node:fs/promises'
import type { Log } from '@windlass/shared/log.ts'
import { compose } from './compose.ts'
import type { Composed, Made } from './compose.ts'
import type { AgentConfig } from './config.ts'
import { isFull } from './disk-full.ts'
import { EXIT } from './exit-codes.ts'
import { startHealth } from './health/server.ts'
import { makeStateFolder, obtainIdentity } from './identity.ts'
import type { Refused } from './link/socket.ts'
import { untilReported } from './final-report.ts'
import { checkLoop } from './loops/check.ts'
import { claimLoop } from './loops/claim.ts'
import { fenceLoop } from './loops/fence.ts'
import { heartbeatLoop } from './loops/heartbeat.ts'
import { parkedLoop } from './loops/parked.ts'
import { renewKeyLoop } from './loops/renew-key.ts'
import { renewLoop } from './loops/renew.ts'
import { statusLoop } from './loops/status.ts'
import type { Needs } from '@windlass/shared/needs.ts'
import { assertPrivate } from './plain-http.ts'
import { clearFormer } from './run/hosts/leftovers.ts'
import type { FormerWorkspaces } from './run/hosts/former-workspaces.ts'
import { giveUpReserve, hasRoom, takeReserve } from './reserve.ts'
import { lockState, type StateLock } from './state-lock.ts'
import type { Who } from './status/status-now.ts'
import { createUrgency, finishRuns, fired } from './stop.ts'
import type { Urgency } from './stop.ts'

export interface Agent {
  readonly runner: string
  readonly org: string
  readonly pool: string
  /** Resolves with the first `welcome` of the coordinator; never, when there is none. */
  readonly connected: Promise<void>
  /** Resolves with an exit code when everything is stopped and put away. */
  readonly done: Promise<number>
  /**
   * Takes no more work and ends when what runs is done, or the time for that is over. A second call asks the programs to stop, a
   * third one kills them.
   */
  stop: Urgency['raise']
}

/**
 * Starts everything and returns as soon as the agent is registered and its loops run; connecting may take longer.
 * `urgency`: it may be asked to stop before that.
 */
export async function startAgent(config: AgentConfig, options: { log: Log; urgency?: Urgency }): Promise<Agent> {
  assertPrivate(config)
  const { urgency = createUrgency() } = options
  await makeStateFolder(config.home)
  const settled = { ...config, home: await realpath(config.home) }
  const lock = await lockOnFullDisk(settled.home, { log: options.log, signal: urgency.leave })
  const made: Made = [{ undo: () => lock.release() }]
  try {
    const workspaces = await clearFormer(settled.home, options.log, settled.isolation.cgroup)
    made.push({ undo: () => workspaces.close() })
    await giveUpReserve(settled.home)
    await workspaces.untilRoom(() => hasRoom(settled.home), urgency.leave)
    const identity = await obtainIdentity(settled, options.log, urgency.leave)
    const { connected, ...composed } = await compose(settled, { identity, workspaces }, options.log, made)
    await holdReserve(settled.home, workspaces, made)
    if (config.health) await answerHealth(composed.deps, config.health, made)
    const done = runAndTidy({ ...composed, urgency, who: identity }, made)
    const { runner, org, pool } = identity
    return { runner, org, pool, connected, done, stop: urgency.raise }
  } catch (error) {
    await undo(made)
    throw error
  }
}

/** Also where the disk has no room for the lock. */
async function lockOnFullDisk(home: string, options: Parameters<typeof lockState>[1]): Promise<StateLock> {
  try {
    return await lockState(home, options)
  } catch (error) {
    if (!isFull(error)) throw error
    await giveUpReserve(home)
    return lockState(home, options)
  }
}

/** What is still to be removed may have its room. */
async function holdReserve(home: string, workspaces: FormerWorkspaces, made: Made): Promise<void> {
  if (await takeReserve(home)) return
  // The checks of the disk say what is wrong with it.
  const held = workspaces
    .removed()
    .then((isRemoved) => isRemoved && takeReserve(home))
    .catch(() => false)
  const undo = async () => {
    await workspaces.close()
    await held
  }
  made.push({ undo })
}

async function answerHealth(
  deps: Needs<typeof startHealth>,
  at: NonNullable<AgentConfig['health']>,
  made: Made,
): Promise<void> {
  const health = await startHealth(deps, at)
  made.push({ undo: () => health.close() })
}

async function runAndTidy(life: Life, made: Made): Promise<number> {
  try {
    return await runLoops(life)
  } finally {
    await undo(made)
  }
}

/** In reverse order. What cannot be put away must not keep the rest from it. */
async function undo(made: Made): Promise<void> {
  const troubles: unknown[] = []
  for (const each of made.splice(0).toReversed()) {
    try {
      await each.undo()
    } catch (error) {
      troubles.push(error)
    }
  }
  if (troubles.length > 0) throw new AggregateError(troubles, 'The agent could not put everything away')
}

interface Life extends Omit<Composed, 'connected'> {
  urgency: Urgency
  who: Who
}

/** All loops, from their start to the last of them; answers the exit code. */
async function runLoops({ deps, listener, urgency, who }: Life): Promise<number> {
  const ending = new AbortController()
  let isBroken = false
  const guarded = async <T>(loop: Promise<T>): Promise<T | undefined> => {
    try {
      return await loop
    } catch (error) {
      deps.log.error('agent.broken', { error })
      isBroken = true
      urgency.killNow()
      return undefined
    }
  }
  const linked = guarded(deps.link.keep(ending.signal, listener))
  // Without a connection, and without hope of one, nothing that runs here may go on.
  const refused = linked.then((frame) => frame && urgency.killNow())
  const { signal } = ending
  const others = [
    heartbeatLoop(deps, signal),
    fenceLoop(deps, signal),
    renewLoop(deps, signal),
    renewKeyLoop(deps, signal),
    checkLoop(deps, signal),
    parkedLoop(deps, signal),
  ]
  const loops = [claimLoop(deps, urgency.leave), statusLoop(deps, who, signal), ...others].map(guarded)

  await fired(urgency.leave)
  deps.log('agent.stopping', { runs: deps.agentRuns.size })
  await finishRuns(deps, urgency)
  await untilReported(deps, urgency)
  ending.abort()
  await Promise.all([refused, ...loops])
  deps.upload.stop()
  return isBroken ? EXIT.internal : exitCode(await linked)
}

const REFUSALS: Record<Refused['code'], number> = {
  UPGRADE_REQUIRED: EXIT.upgrade,
  REPLACED: EXIT.replaced,
  REVOKED: EXIT.revoked,
}

function exitCode(refused: Refused | undefined): number {
  return refused ? REFUSALS[refused.code] : EXIT.stopped
}
