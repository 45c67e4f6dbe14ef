import { DESCRIPTOR_FILE, type Descriptor } from '@windlass/shared/model/descriptor.ts'
import type { DeployProblem } from './deploy-error.ts'

interface Effectless {
  key: string
  /** What this version does in its place. */
  because: string
  isUsed: (descriptor: Descriptor) => boolean
}

/** Keys that are checked and kept, and that nothing follows from yet. Whoever builds one takes it out of here. */
const EFFECTLESS: readonly Effectless[] = [
  {
    key: 'retries.onLost',
    because: 'a waiting run whose process is lost is always led back to where it stood',
    isUsed: ({ retries }) => retries.onLost !== 'restart',
  },
  {
    key: 'notifications',
    because: 'this version notifies nobody',
    isUsed: ({ notifications }) => notifications.length > 0,
  },
  {
    key: 'budget',
    because: 'this version meters neither tokens nor costs',
    isUsed: ({ budget }) => budget !== null,
  },
  {
    key: 'workspace.persist',
    because: 'each run gets an empty workspace',
    isUsed: ({ workspace }) => workspace.persist,
  },
]

/** A warning for each key that somebody counts on in vain. */
export function effectless(descriptor: Descriptor): DeployProblem[] {
  return EFFECTLESS.filter(({ isUsed }) => isUsed(descriptor)).map(({ key, because }) => ({
    message: `\`${key}\` has no effect yet: ${because}`,
    file: DESCRIPTOR_FILE,
  }))
}
