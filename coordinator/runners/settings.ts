import type { PoolSettings } from '@windlass/shared/model/pool.ts'
import type { AgentSettings } from '@windlass/shared/wire/agent.ts'
import type { Config } from '../config.ts'

/** 25 s: proxies in front of us close silent requests at 30. */
const POLL_MS = 25_000
/** Where a descriptor names no grace of its own. */
const CANCEL_GRACE_MS = 10_000
/** Between an agent's own end of its runs and their beginning elsewhere: its kills take time, and clocks run differently. */
const MARGIN_MS = 25_000
/** Of all agents of a coordinator together. */
const BEATS_PER_SECOND = 50
/** Two beats may be lost before an agent stops its runs. */
const BEATS_PER_FENCE = 2.5
/** An agent makes itself a new key after three quarters of a key's life. */
const KEY_RENEWAL = 0.75

type Lengths = Pick<Config, 'heartbeatMs' | 'fenceMs' | 'leaseMs' | 'keyLifeMs'>
type Pool = Pick<
  PoolSettings,
  'isolation' | 'network' | 'slots' | 'limits' | 'parkedMs' | 'drainMs' | 'reassignAfterMs'
>

/** How the agents of this pool are to behave, as things are now. */
export function agentSettings(
  { config, sockets }: { config: Lengths; sockets: { readonly size: number } },
  { isolation, network, slots, limits, parkedMs, drainMs, ...pool }: Pool,
): AgentSettings {
  const fenceMs = fenceOf(config, pool)
  return {
    heartbeatMs: heartbeatOf(config, fenceMs, sockets.size),
    fenceMs,
    cancelGraceMs: CANCEL_GRACE_MS,
    pollMs: POLL_MS,
    renewKeyMs: renewKeyMs(config),
    pool: { isolation, network, slots, limits, parkedMs, drainMs },
  }
}

/** The age at which an agent's key is renewed. */
export function renewKeyMs({ keyLifeMs }: Pick<Config, 'keyLifeMs'>): number {
  return Math.round(keyLifeMs * KEY_RENEWAL)
}

function fenceOf({ fenceMs }: Lengths, { reassignAfterMs }: Pick<Pool, 'reassignAfterMs'>): number {
  return reassignAfterMs === null ? fenceMs : reassignAfterMs - MARGIN_MS
}

/**
 * Beyond 500 agents they beat less often, so that this coordinator hears of 50 a second; but never so seldom that two lost beats would
 * stop their runs. From 1,000 agents on, with a fence of 50 s, the number grows again: leases do not, or a dead agent's runs would wait.
 */
function heartbeatOf({ heartbeatMs }: Lengths, fenceMs: number, agents: number): number {
  return Math.max(heartbeatMs, Math.min(stretchedMs(agents), Math.floor(fenceMs / BEATS_PER_FENCE)))
}

/** In whole seconds: a change is told to everybody. */
const stretchedMs = (agents: number) => Math.ceil(agents / BEATS_PER_SECOND) * 1000

/**
 * After so long an agent of which nothing was heard is late. Its beats differ by a fifth, see agent/loops/heartbeat.ts,
 * and none of this coordinator's agents was told to beat less often.
 */
export function silentMs({ config, sockets }: { config: Lengths; sockets: { readonly size: number } }): number {
  return Math.round(1.25 * Math.max(config.heartbeatMs, stretchedMs(sockets.size))) + 1000
}

/**
 * For how long its runs are an agent's after it was heard of, when `promisedMs` is the silence after which it stops them: longer in any
 * case, whatever the pool says by now. Otherwise a setting that is changed could let two attempts of a run execute at once.
 */
export function leaseOf(
  config: Lengths,
  { reassignAfterMs }: Pick<Pool, 'reassignAfterMs'>,
  promisedMs: number,
): number {
  const marginMs = reassignAfterMs === null ? config.leaseMs - config.fenceMs : MARGIN_MS
  return Math.max(reassignAfterMs ?? config.leaseMs, promisedMs + marginMs)
}
