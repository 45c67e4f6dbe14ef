import type {
  ConnectionId,
  DeliveryId,
  InputId,
  JobId,
  RegistrationTokenId,
  RunId,
  RunnerId,
  ScheduleId,
} from '@windlass/shared/ids.ts'
import type { Caller } from '../actor.ts'
import type { Needs } from '@windlass/shared/needs.ts'
import { getJob } from '../bulk/read.ts'
import { needConnection } from '../inbound/connections.ts'
import { assertDelivery } from '../inbound/deliveries.ts'
import { getInput } from '../inputs/read.ts'
import { getPool } from '../runners/pools.ts'
import { getRunner } from '../runners/read.ts'
import { needToken } from '../runners/tokens.ts'
import { getRun } from '../runs/read.ts'
import { getSchedule } from '../schedules/schedules.ts'
import { authorize } from '../accounts/authorize.ts'
import { needAddress } from './input.ts'
import type { Plan } from './plan.ts'

export type OwnedNeeds = Needs<
  | typeof getRun
  | typeof getSchedule
  | typeof getInput
  | typeof getJob
  | typeof getPool
  | typeof getRunner
  | typeof needConnection
  | typeof needToken
  | typeof assertDelivery
>

/** How the things are looked up that a path names without their org. */
const FIND: Readonly<Record<string, (deps: OwnedNeeds, caller: Caller, id: string) => Promise<unknown>>> = {
  run: (deps, caller, id) => getRun(deps, caller, id as RunId),
  schedule: (deps, caller, id) => getSchedule(deps, caller, id as ScheduleId),
  job: (deps, caller, id) => getJob(deps, caller, id as JobId),
  input: (deps, caller, id) => getInput(deps, caller, id as InputId),
  connection: (deps, caller, id) => needConnection(deps, caller, id as ConnectionId),
  delivery: (deps, caller, id) => assertDelivery(deps, caller, id as DeliveryId),
  pool: (deps, caller, id) => getPool(deps, caller, id),
  token: (deps, caller, id) => needToken(deps, caller, id as RegistrationTokenId),
  runner: (deps, caller, id) => getRunner(deps, caller, { runner: id as RunnerId, base: '' }),
}

/**
 * Throws unless role and scopes of the caller allow the row. What is missing or of another org is not found by anybody,
 * whatever he may do; it is looked for only where he is refused, as the handler finds out for all others.
 */
export async function authorizeFor(
  plan: Plan,
  caller: Caller,
  deps: OwnedNeeds,
  given: Record<string, unknown>,
): Promise<void> {
  try {
    authorize(plan.row, caller)
  } catch (refused) {
    if (!plan.scopedToOrg) await needOwned(plan, caller, deps, given)
    throw refused
  }
}

async function needOwned(plan: Plan, caller: Caller, deps: OwnedNeeds, given: Record<string, unknown>): Promise<void> {
  needAddress(plan, given)
  for (const name of plan.addressed) {
    const id = given[name]
    if (typeof id === 'string') await FIND[name]?.(deps, caller, id)
  }
}
