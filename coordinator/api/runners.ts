import { decodeCursor, pageOf } from './page.ts'
import { demandOf } from '../runners/demand.ts'
import { deregisterRunner } from '../runners/deregister.ts'
import { planDrain } from '../runners/plan.ts'
import { createPool, deletePool, getPool, updatePool } from '../runners/pools.ts'
import { getRunner, listPools, listRunners } from '../runners/read.ts'
import { mintRegistrationToken } from '../runners/register.ts'
import { revokeRunner } from '../runners/revoke.ts'
import { listTokens, revokeToken } from '../runners/tokens.ts'
import { cordonRunner, drainRunner, resumeRunner } from '../runners/steer.ts'
import type { Call, HandlersFor } from './call.ts'
import type { Needs } from '@windlass/shared/needs.ts'

type PoolsNeeds = Needs<
  | typeof createPool
  | typeof deletePool
  | typeof demandOf
  | typeof getPool
  | typeof listPools
  | typeof listTokens
  | typeof mintRegistrationToken
  | typeof revokeToken
  | typeof updatePool
>

export const pools = (deps: PoolsNeeds): HandlersFor<'pools'> => ({
  list: async ({ input, caller }) => {
    const after = decodeCursor(input.cursor, /^pool_[0-9a-z]{26}$/)
    const found = await listPools(deps, caller, { after, limit: input.limit + 1 })
    const { rows, nextCursor } = pageOf(found, input.limit, (pool) => pool.id)
    return { runnerPools: rows, nextCursor }
  },

  get: async ({ input, caller }) => ({ runnerPool: await getPool(deps, caller, input.pool) }),

  create: async ({ input, caller }) => ({ runnerPool: await createPool(deps, caller, input) }),

  update: async ({ input, caller }) => ({ runnerPool: await updatePool(deps, caller, input) }),

  delete: async ({ input, caller }) => {
    await deletePool(deps, caller, input.pool)
    return {}
  },

  demand: async ({ input, caller }) => ({ demand: await demandOf(deps, caller.orgId, input.pool) }),

  createToken: async ({ input, caller }) => ({
    registrationToken: await mintRegistrationToken(deps, caller, input),
  }),

  listTokens: async ({ input, caller }) => {
    const before = decodeCursor(input.cursor, /^rtok_[0-9a-z]{26}$/)
    const found = await listTokens(deps, caller, input.pool, { before, limit: input.limit + 1 })
    const { rows, nextCursor } = pageOf(found, input.limit, (token) => token.id)
    return { registrationTokens: rows, nextCursor }
  },

  revokeToken: async ({ input, caller }) => {
    await revokeToken(deps, caller, input.token)
    return {}
  },
})

/** What the agent is installed from stands in some answers. */
const withBase = <I extends object>({ input, base }: Pick<Call<I>, 'input' | 'base'>) => ({ ...input, base })

type RunnersNeeds = Needs<
  | typeof cordonRunner
  | typeof deregisterRunner
  | typeof drainRunner
  | typeof getRunner
  | typeof listRunners
  | typeof planDrain
  | typeof resumeRunner
  | typeof revokeRunner
>

export const runners = (deps: RunnersNeeds): HandlersFor<'runners'> => ({
  list: async (call) => {
    const { input, caller } = call
    const after = decodeCursor(input.cursor, /^rnr_[0-9a-z]{26}$/)
    const { pool, status, intake, limit } = input
    const filter = { orgId: caller.orgId, pool, status, intake, after, limit: limit + 1 }
    const found = await listRunners(deps, filter, withBase(call).base)
    const { rows, nextCursor } = pageOf(found, limit, (runner) => runner.id)
    return { runners: rows, nextCursor }
  },

  get: async (call) => ({ runner: await getRunner(deps, call.caller, withBase(call)) }),

  plan: async ({ input, caller }) => ({ plan: await planDrain(deps, caller, input.runner) }),

  cordon: async (call) => ({ runner: await cordonRunner(deps, call.caller, withBase(call)) }),

  drain: async (call) => ({ runner: await drainRunner(deps, call.caller, withBase(call)) }),

  resume: async (call) => ({ runner: await resumeRunner(deps, call.caller, withBase(call)) }),

  revoke: async (call) => ({ runner: await revokeRunner(deps, call.caller, withBase(call)) }),

  deregister: async ({ input, caller }) => {
    await deregisterRunner(deps, caller, input)
    return {}
  },
})
