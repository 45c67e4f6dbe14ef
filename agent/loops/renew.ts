import { pause } from '@windlass/shared/time.ts'
import type { Link } from '../link/link.ts'
import type { AgentRuns } from '../run/agent-runs.ts'

/** Per-run tokens live for 10 minutes. */
const RENEW_AFTER_MS = 7 * 60_000
const LOOK_MS = 15_000

/** Asks for new per-run tokens in time; asked again at each look until the answer is there. */
export async function renewLoop(
  deps: { agentRuns: Pick<AgentRuns, 'all'>; link: Pick<Link, 'send'> },
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await pause(LOOK_MS, signal)
    const now = performance.now()
    const due = deps.agentRuns.all().filter((agentRun) => now - agentRun.tokenAt > RENEW_AFTER_MS && agentRun.isHeld)
    if (due.length > 0) deps.link.send({ t: 'renew', runs: due.map(({ offer }) => [offer.run, offer.epoch] as const) })
  }
}
