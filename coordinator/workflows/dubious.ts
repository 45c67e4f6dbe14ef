import { DESCRIPTOR_FILE, type Descriptor } from '@windlass/shared/model/descriptor.ts'
import type { DeployProblem } from './deploy-error.ts'

interface Dubious {
  isFound: (descriptor: Descriptor) => boolean
  message: string
}

/** Values that may stand together, and hardly mean what somebody wanted. */
const DUBIOUS: readonly Dubious[] = [
  {
    isFound: ({ timeoutMs, wallTimeoutMs }) => wallTimeoutMs !== null && wallTimeoutMs < timeoutMs,
    message:
      '`timeout.wall` is shorter than `timeout.active`: no run can execute that long. Raise the one or lower the other',
  },
  {
    isFound: ({ queueTimeoutMs, wallTimeoutMs }) =>
      queueTimeoutMs !== null && wallTimeoutMs !== null && queueTimeoutMs >= wallTimeoutMs,
    message:
      '`timeout.queue` is not shorter than `timeout.wall`, which always ends a run first. Lower it or leave it out',
  },
  {
    isFound: ({ retries, wallTimeoutMs }) =>
      retries.error.max > 0 && wallTimeoutMs !== null && retries.error.delayMs >= wallTimeoutMs,
    message:
      '`retries.error.delay` is not shorter than `timeout.wall`: no retry can begin in time. Lower it or raise `timeout.wall`',
  },
  {
    isFound: ({ schedules }) => schedules.some(({ when }) => when.kind === 'at' && when.at <= Date.now()),
    message: '`schedules` has an `at` that has passed: it starts no run, and is recorded as missed',
  },
  {
    isFound: ({ debounce, wallTimeoutMs }) =>
      debounce !== null && wallTimeoutMs !== null && debounce.maxWaitMs >= wallTimeoutMs,
    message:
      '`debounce.maxWait` (ten times `wait` by default) is not shorter than `timeout.wall`: ' +
      'calls that go on coming end the run before it begins. Lower the one or raise the other',
  },
  {
    isFound: ({ concurrency }) => {
      const limits = [concurrency ?? []].flat()
      const all = limits.find(({ key }) => key === null)
      return all !== undefined && limits.some(({ key, limit }) => key !== null && limit >= all.limit)
    },
    message: 'a limit of `concurrency` with a `key` is not lower than that without one. Lower it or leave it out',
  },
]

export function dubious(descriptor: Descriptor): DeployProblem[] {
  return DUBIOUS.filter(({ isFound }) => isFound(descriptor)).map(({ message }) => ({ message, file: DESCRIPTOR_FILE }))
}
