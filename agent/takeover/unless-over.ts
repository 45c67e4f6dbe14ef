import type { Ending } from '@windlass/shared/model/ending.ts'
import type { RejoinReport } from '@windlass/shared/wire/program.ts'
import { sinceBootMs } from '../os/process-id.ts'
import type { AgentRun } from '../run/agent-run.ts'
import type { HostProcess } from '../run/hosts/host-process.ts'
import { TIMEOUT_GRACE_MS } from '../run/program/compute-clock.ts'
import { rejoinIn } from '../run/program/reports.ts'
import { createTimers } from '../run/program/timers.ts'
import type { ProgramRecord } from './records.ts'

/** What it has computed since it last began to, and what is left of its time, in milliseconds. */
export interface TimeOf {
  countedMs: number
  timeoutMs: number
}

export function timeOf({ computesFromMs, leftMs }: ProgramRecord, isParked: boolean): TimeOf {
  const countedMs = isParked || computesFromMs === null ? 0 : sinceBootMs() - computesFromMs
  return { countedMs, timeoutMs: Math.max(1, leftMs - countedMs) }
}

/**
 * Where the program stands, by its first word; or how it has ended without one. A program that computes and never
 * waits does not speak, and nothing that is said to it is heard: its time and the grace of a stop are counted here.
 */
export async function rejoined(
  host: HostProcess,
  agentRun: AgentRun,
  { timeoutMs }: TimeOf,
): Promise<{ report: RejoinReport } | { ending: Ending }> {
  const { offer, unwanted, fated } = agentRun
  const timers = createTimers()
  const over = Promise.withResolvers<{ ending: Ending }>()
  const onCancel = () => {
    if (!agentRun.cancelled) return
    const { why, graceMs } = agentRun.cancelled
    const ending: Ending =
      why === 'timed-out' ? { how: 'timed-out', timeoutMs: offer.timeoutMs } : { how: 'cancelled', forced: true }
    timers.later(graceMs ?? offer.graceMs, () => over.resolve({ ending }))
  }
  const onFate = () => over.reject(new Error('it is not wanted any more'))
  const graceMs = Math.min(offer.graceMs, TIMEOUT_GRACE_MS)
  const ending: Ending = { how: 'timed-out', timeoutMs: offer.timeoutMs }
  timers.later(timeoutMs + graceMs, () => over.resolve({ ending }))
  unwanted.addEventListener('abort', onCancel, { once: true })
  fated.addEventListener('abort', onFate, { once: true })
  // Orders may have come before it was found.
  if (unwanted.aborted) onCancel()
  if (fated.aborted) onFate()
  try {
    return await Promise.race([heard(host).then((report) => ({ report })), over.promise])
  } finally {
    timers.clear()
    unwanted.removeEventListener('abort', onCancel)
    fated.removeEventListener('abort', onFate)
  }
}

function heard(host: HostProcess): Promise<RejoinReport> {
  const { promise, resolve, reject } = Promise.withResolvers<RejoinReport>()
  host.listen({
    frames([frame, ...more]) {
      if (frame?.name === 'rejoin' && more.length === 0) resolve(rejoinIn(frame))
      else
        reject(
          new Error(
            `it said something else than where it stands: ${[frame, ...more].map((each) => each?.name).join(', ')}`,
          ),
        )
    },
    raw() {
      // It has no such pipes any more.
    },
    broken: reject,
  })
  void host.exit.then(() => reject(new Error('it has ended')))
  return promise
}
