import type { AgentSettings } from '@windlass/shared/wire/agent.ts'
import type { Config } from '../config.ts'

/** 25 s: proxies in front of us close silent requests at 30. */
const POLL_MS = 25_000
/** Where a descriptor names no grace of its own. */
const CANCEL_GRACE_MS = 10_000

export function agentSettings(config: Config): AgentSettings {
  return { heartbeatMs: config.heartbeatMs, fenceMs: config.fenceMs, cancelGraceMs: CANCEL_GRACE_MS, pollMs: POLL_MS }
}
