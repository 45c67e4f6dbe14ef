import { decodeCursor, pageOf } from './page.ts'
import { demandOf } from '../runners/demand.ts'
import { deregisterRunner } from '../runners/deregister.ts'
import { planDrain } from '../runners/plan.ts'
import { createPool, deletePool, getPool, updatePool } from '../runners/pools.ts'
import { getRunner, listPools, listRunners } from '../runners/read.ts'
import { mintRegistrationToken } from '../runners/register.ts'
import { revokeRunner } from '../runners/revoke.ts'
import { cordonRunner, drainRunner, resumeRunner } from '../runners/steer.ts'
import type { Call, HandlersFor } from './call.ts'

export const pools: HandlersFor<'pools'> = {
  list: async ({ input, caller, deps }) => {
    const after = decodeCursor(input.cursor, /^pool_[0-9a-z]{26}$/)
    const found = await listPools(deps, caller, { after, limit: input.limit + 1 })
    const { rows, nextCursor } = pageOf(found, input.limit, (pool) => pool.id)
    return { runnerPools: rows, nextCursor }
  },

  get: async ({ input, caller, deps }) => ({ runnerPool: await getPool(deps, caller, input.pool) }),

  create: async ({ input, caller, deps }) => ({ runnerPool: await createPool(deps, caller, input) }),

  update: async ({ input, caller, deps }) => ({ runnerPool: await updatePool(deps, caller, input) }),

  delete: async ({ input, caller, deps }) => {
    await deletePool(deps, caller, input.pool)
    return {}
  },

  demand: async ({ input, caller, deps }) => ({ demand: await demandOf(deps, caller.orgId, input.pool) }),

  createToken: async ({ input, caller, deps }) => ({
    registrationToken: await mintRegistrationToken(deps, caller, input),
  }),
}

/** What the agent is installed from stands in some answers. */
const withBase = <I extends object>({ input, base }: Pick<Call<I>, 'input' | 'base'>) => ({ ...input, base })

export const runners: HandlersFor<'runners'> = {
  list: async (call) => {
    const { input, caller, deps } = call
    const after = decodeCursor(input.cursor, /^rnr_[0-9a-z]{26}$/)
    const { pool, status, intake, limit } = input
    const filter = { orgId: caller.orgId, pool, status, intake, after, limit: limit + 1 }
    const found = await listRunners(deps, filter, withBase(call).base)
    const { rows, nextCursor } = pageOf(found, limit, (runner) => runner.id)
    return { runners: rows, nextCursor }
  },

  get: async (call) => ({ runner: await getRunner(call.deps, call.caller, withBase(call)) }),

  plan: async ({ input, caller, deps }) => ({ plan: await planDrain(deps, caller, input.runner) }),

  cordon: async (call) => ({ runner: await cordonRunner(call.deps, call.caller, withBase(call)) }),

  drain: async (call) => ({ runner: await drainRunner(call.deps, call.caller, withBase(call)) }),

  resume: async (call) => ({ runner: await resumeRunner(call.deps, call.caller, withBase(call)) }),

  revoke: async (call) => ({ runner: await revokeRunner(call.deps, call.caller, withBase(call)) }),

  deregister: async ({ input, caller, deps }) => {
    await deregisterRunner(deps, caller, input)
    return {}
  },
}
