import { z } from 'zod'
import { Isolation, RunLimits } from '@windlass/shared/model/pool.ts'
import type { WantedIsolation } from './own-users.ts'
import type { UidRange } from './plan.ts'

const limits = RunLimits.shape
// The range of `useradd` and its like ends far below, and 65534 is `nobody` nearly everywhere.
const FIRST_UID = 1000
const LAST_UID = 2 ** 31 - 2
const UIDS = /^(\d{1,10})-(\d{1,10})$/
const UIDS_SETTING = /^(auto|off|\d{1,10}-\d{1,10})$/

/** Settings of an agent about what its runs may see and use. */
export const ISOLATION_SETTINGS = {
  WINDLASS_AGENT_ISOLATION: Isolation.default('process').meta({
    description:
      'How runs are kept apart: `process`, or `bubblewrap` for a view of the file system of their own. Of this and what the pool says the stricter one counts.',
  }),
  WINDLASS_AGENT_NETWORK: z
    .enum(['host', 'none'])
    .default('host')
    .meta({ description: 'Whether runs see the network; `none` needs `bubblewrap`.' }),
  WINDLASS_AGENT_RUN_UIDS: z
    .string()
    .regex(UIDS_SETTING, 'must be `auto`, `off`, or a range of user ids such as 700000-700999')
    .refine(
      (text) => isAutoOrOff(text) || isRange(text),
      `must go from a lower to a higher user id, both of ${FIRST_UID} or more and 65534 not among them`,
    )
    .default('auto')
    .meta({
      description:
        'User ids for runs, such as `700000-700999`, used by nobody else on the machine: each live process has one of its own, and the first is the group of all of them. Needs root. `auto`: as root a free range from 701000 on where that works, else none. `off`: runs execute as the user of the agent.',
    }),
  WINDLASS_AGENT_CGROUP: z.string().min(1).default('auto').meta({
    description:
      'Where runs get their cgroups: `auto`, `off`, or the folder of a cgroup v2 that the agent may make others in.',
  }),
  WINDLASS_AGENT_LIMIT_MEMORY_MB: limited(limits.memoryMb, 'Memory of a run in MiB'),
  WINDLASS_AGENT_LIMIT_CPUS: limited(limits.cpus, 'Cores of a run; 0.5 is half of one'),
  WINDLASS_AGENT_LIMIT_PROCESSES: limited(
    limits.processes,
    'Processes and threads of a run',
    'half of what the agent may have, where runs have users or cgroups',
  ),
  WINDLASS_AGENT_LIMIT_OPEN_FILES: limited(limits.openFiles, 'Open files of a process'),
  WINDLASS_AGENT_LIMIT_DISK_MB: limited(limits.diskMb, 'What a run may have in its workspace, in MiB'),
}

function limited<T extends z.ZodType<number | null>>(
  limit: z.ZodDefault<z.ZodNullable<T>>,
  description: string,
  otherwise = 'no limit',
) {
  const meta = { description: `${description}. Of this and what the pool says the lower one counts.`, otherwise }
  return limit.unwrap().unwrap().optional().meta(meta)
}

const IsolationSettings = z.object(ISOLATION_SETTINGS)

export function hostIsolation(s: z.output<typeof IsolationSettings>): WantedIsolation {
  return {
    level: s.WINDLASS_AGENT_ISOLATION,
    network: s.WINDLASS_AGENT_NETWORK,
    uids: s.WINDLASS_AGENT_RUN_UIDS === 'auto' ? 'auto' : rangeIn(s.WINDLASS_AGENT_RUN_UIDS),
    cgroup: s.WINDLASS_AGENT_CGROUP,
    limits: {
      memoryMb: s.WINDLASS_AGENT_LIMIT_MEMORY_MB ?? null,
      cpus: s.WINDLASS_AGENT_LIMIT_CPUS ?? null,
      processes: s.WINDLASS_AGENT_LIMIT_PROCESSES ?? null,
      openFiles: s.WINDLASS_AGENT_LIMIT_OPEN_FILES ?? null,
      diskMb: s.WINDLASS_AGENT_LIMIT_DISK_MB ?? null,
    },
  }
}

function rangeIn(text: string): UidRange | null {
  const [, first, last] = UIDS.exec(text) ?? []
  return first && last ? { first: Number(first), last: Number(last) } : null
}

const isAutoOrOff = (text: string) => text === 'auto' || text === 'off'

function isRange(text: string): boolean {
  const range = rangeIn(text)
  if (!range) return false
  const holdsNobody = range.first <= 65534 && range.last >= 65534
  return range.first >= FIRST_UID && range.first <= range.last && range.last <= LAST_UID && !holdsNobody
}
