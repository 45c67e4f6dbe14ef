import { createSeats } from '../../limits/seats.ts'
import { createSlowOrgs } from '../../limits/slow-orgs.ts'
import type { PrepareDeps } from './trigger.ts'

/**
 * Lookups for calls of runs at once, of an org and of all orgs. They share twelve connections with all else that is
 * read, and requests of agents have no limit: four agents, each of whose calls named another environment, kept triggers
 * of others waiting for 3 s. One of the seats is kept for orgs whose lookups were short of late.
 */
const AT_ONCE = { org: 2, all: 4 }

type Lookups = Pick<PrepareDeps, 'targets' | 'environments'>

/** The same with lookups of workflows and environments in turns of their orgs. */
export function lookUpInTurns<Deps extends Lookups>(deps: Deps): Deps {
  const { targets, environments } = deps
  const seats = createSeats(AT_ONCE, createSlowOrgs())
  async function inTurn<T>(orgId: string, look: () => Promise<T>): Promise<T> {
    const leave = await seats.take(orgId)
    try {
      return await look()
    } finally {
      leave()
    }
  }
  return {
    ...deps,
    targets: {
      ...targets,
      resolve: (orgId, ...wanted) => inTurn(orgId, () => targets.resolve(orgId, ...wanted)),
    },
    environments: {
      ...environments,
      find: (orgId, ref) => inTurn(orgId, () => environments.find(orgId, ref)),
      need: (orgId, ref) => inTurn(orgId, () => environments.need(orgId, ref)),
    },
  }
}
