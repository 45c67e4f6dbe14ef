import type { Ending } from '@windlass/shared/model/ending.ts'
import type { RejoinReport } from '@windlass/shared/wire/program.ts'
import { sinceBootMs } from '../os/process-id.ts'
import type { AgentRun } from '../run/agent-run.ts'
import type { HostProcess, RawOutput } from '../run/hosts/host-process.ts'
import { TIMEOUT_GRACE_MS } from '../run/program/compute-clock.ts'
import { OF_TAKEOVER } from '../run/program/frame-limits.ts'
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

/** For one that waits, whose own time stands still. What it needs is back by then, or a person has to act. */
const MOST_MS = 600_000

interface OneComingBack {
  host: HostProcess
  agentRun: AgentRun
  record: ProgramRecord
  isParked: boolean
}

/**
 * What `work` comes to; or how the program ends before that. Until it goes on it hears nothing: its time and the grace
 * of a stop are counted here. `work` gives up when its signal fires.
 */
export async function unlessOver<T extends object>(
  { host, agentRun, record, isParked }: OneComingBack,
  work: (signal: AbortSignal) => Promise<T>,
): Promise<T | { ending: Ending }> {
  const { offer } = agentRun
  const [timers, ofOrders] = [createTimers(), createTimers()]
  const working = new AbortController()
  const over = Promise.withResolvers<{ ending: Ending }>()
  const fail = (why: string) => over.reject(new Error(why))
  const timedOut: Ending = { how: 'timed-out', timeoutMs: offer.timeoutMs }
  const unwanted = () => fail('it is not wanted any more')
  const onOrder = () => {
    const { cancelled, endsInMs } = agentRun
    ofOrders.clear()
    if (endsInMs === Infinity) return
    if (endsInMs === -Infinity) return unwanted()
    const ending: Ending = cancelled?.why === 'timed-out' ? timedOut : { how: 'cancelled', forced: true }
    ofOrders.later(endsInMs, () => (cancelled ? over.resolve({ ending }) : unwanted()))
  }
  const graceMs = Math.min(offer.graceMs, TIMEOUT_GRACE_MS)
  if (isParked) timers.later(MOST_MS, () => fail(`it could not go on within ${MOST_MS / 60_000} minutes`))
  else timers.later(timeOf(record, false).timeoutMs + graceMs, () => over.resolve({ ending: timedOut }))
  agentRun.onOrder(onOrder)
  // Orders may have come before it was found.
  onOrder()
  void host.exit.then(() => fail('it has ended'))
  try {
    return await Promise.race([work(working.signal), over.promise])
  } finally {
    working.abort()
    timers.clear()
    ofOrders.clear()
    agentRun.onOrder(() => {})
  }
}

/** What one may write past the frames before it says where it stands. */
const MOST_RAW_BYTES = 1024 * 1024

export interface Heard {
  report: RejoinReport
  /** Its secrets are not known yet: it cannot be told before. */
  raw: RawOutput[]
}

/**
 * Where the program stands, by its first word. One that computes and never waits does not say any. What it writes past
 * the frames is read meanwhile: else it could stand still before it comes to that word. Then nothing more is read.
 */
export function heard(host: HostProcess): Promise<Heard> {
  const { promise, resolve, reject } = Promise.withResolvers<Heard>()
  const raw: RawOutput[] = []
  let rawBytes = 0
  host.listen({
    mostBytes: OF_TAKEOVER,
    frames([frame, ...more]) {
      if (frame && more.length === 0) {
        host.pause()
        resolve({ report: rejoinIn(frame), raw })
      } else reject(new Error(`it said ${more.length + 1} times where it stands`))
    },
    raw(stream, chunk) {
      raw.push({ stream, chunk })
      rawBytes += chunk.length
      if (rawBytes > MOST_RAW_BYTES) reject(new Error('it has written more past its log than is kept for it'))
    },
    broken: reject,
  })
  return promise
}
