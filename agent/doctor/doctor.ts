import { knownIdentity } from '../identity.ts'
import type { Identity } from '../identity.ts'
import { settleUsers } from '../isolation/own-users.ts'
import { NO_LIMITS, planIsolation } from '../isolation/plan.ts'
import type { Located } from '../support/located.ts'
import { lastStatus } from '../support/last-status.ts'
import { trustCaFile } from '../trust.ts'
import { coordinatorQuestions } from './coordinator.ts'
import { examine } from './finding.ts'
import type { Finding } from './finding.ts'
import { hostQuestions } from './host.ts'
import { networkQuestions } from './network.ts'

export interface Consultation {
  located: Located
  isSlow: boolean
  signal: AbortSignal
  onFinding?: (finding: Finding) => void
}

/**
 * Looks at the machine, the way to the coordinator, and what that one says. Changes nothing anywhere. Root has become
 * the user of the agent by then: `becomeOwner`.
 */
export async function examineAgent({ located, isSlow, signal, onFinding }: Consultation): Promise<Finding[]> {
  const { config, settingsFile } = located
  const plan = async () => planIsolation(await settleUsers(config.isolation, config), demandedIn(config.home))
  trustCaFile(config.caFile)
  return examine(
    [
      ...hostQuestions({ config, settingsFile, plan }),
      ...networkQuestions(config),
      ...coordinatorQuestions({ url: config.url, identity: identityIn(config.home), isSlow }),
    ],
    signal,
    onFinding,
  )
}

/** A file that is damaged has been told of by then. */
function identityIn(home: string): Identity | undefined {
  try {
    return knownIdentity(home)
  } catch {
    return undefined
  }
}

/** What the pool demands is known here by what the agent has put in force for it. */
function demandedIn(home: string): Parameters<typeof planIsolation>[1] {
  const found = lastStatus(home)?.isolation
  return found ? { isolation: found.level, network: found.network, limits: NO_LIMITS } : undefined
}
