import type { Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'
import { processorMs } from '../os/process-table.ts'
import type { Paces } from '../paces.ts'
import type { AgentRun } from '../run/agent-run.ts'
import type { AgentRuns } from '../run/agent-runs.ts'
import type { Parking } from '../run/parking.ts'

interface ParkedNeeds {
  agentRuns: Pick<AgentRuns, 'all'>
  parking: Pick<Parking, 'computes'>
  config: { paces: Pick<Paces, 'parkedMs'> }
  log: Log
}

/** Of one core. A process that waits uses next to nothing, and tidies its memory up for some milliseconds at most. */
const SHARE = 1 / 4
/** So often in a row, one after the other. */
const LOOKS = 2

interface Seen {
  atMs: number
  usedMs: number
  parkings: number
  /** How often in a row it has computed. */
  computed: number
}

/**
 * A program is believed when it says that it only waits. What it has left computing nevertheless, in itself or in a
 * process that it has started, would have no slot, no timeout and no part in any limit: it is given up.
 */
export async function parkedLoop({ agentRuns, parking, config, log }: ParkedNeeds, signal: AbortSignal): Promise<void> {
  let seen = new Map<AgentRun, Seen>()
  while (!signal.aborted) {
    await pause(config.paces.parkedMs, signal)
    const parked = agentRuns.all().filter(({ isParked }) => isParked)
    seen = parked.length > 0 ? await look(parked, seen) : new Map<AgentRun, Seen>()
    for (const [agentRun, { computed }] of seen) {
      if (computed < LOOKS || !agentRun.isParked) continue
      log.warn('parked.computes', { run: agentRun.offer.run, epoch: agentRun.offer.epoch })
      parking.computes(agentRun)
    }
  }
}

async function look(parked: readonly AgentRun[], before: Map<AgentRun, Seen>): Promise<Map<AgentRun, Seen>> {
  const used = await processorMs(parked.flatMap((agentRun) => agentRun.pid() ?? []))
  const atMs = performance.now()
  return new Map(
    parked.flatMap((agentRun): [AgentRun, Seen][] => {
      const usedMs = used.get(agentRun.pid() ?? -1)
      if (usedMs === undefined) return []
      const { parkings } = agentRun
      const last = before.get(agentRun)
      // One that has gone on meanwhile may have computed then.
      const hasWaited = last?.parkings === parkings
      const hasComputed = hasWaited && usedMs - last.usedMs > SHARE * (atMs - last.atMs)
      return [[agentRun, { atMs, usedMs, parkings, computed: hasComputed ? last.computed + 1 : 0 }]]
    }),
  )
}
