import type { ComputeClock } from './compute-clock.ts'
import type { HostProcess } from '../hosts/host-process.ts'
import type { Whereabouts } from './program.ts'

/**
 * What it takes to find a process again. In bubblewrap only the agent that started it has a way to it, as to one whose
 * descriptors 1 and 2 have no name; what is replayed would have to be replayed anew.
 */
export function whereaboutsOf(
  host: HostProcess | undefined,
  clock: ComputeClock,
  { isReplaying, isParked }: { isReplaying: boolean; isParked: boolean },
): Whereabouts | undefined {
  if (isReplaying || !host || host.pid === undefined || host.workspace === undefined) return undefined
  const { pid, marker, workspace, enclosure, rawPipes, runtime } = host
  const { uid, folder, key, effective, limits } = enclosure
  if (effective.level !== 'process' || rawPipes === undefined) return undefined
  const times = { countedMs: isParked ? null : clock.counted(), leftMs: clock.leftMs(), turns: clock.turns() }
  return { pid, marker, workspace, uid, cgroup: folder, rawPipes, runtime, key, effective, limits, ...times }
}
