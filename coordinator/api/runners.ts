import { Fault } from '@windlass/shared/errors.ts'
import { decodeCursor, pageOf } from './page.ts'
import { createPool } from '../runners/pools.ts'
import { getRunner, listPools, listRunners } from '../runners/read.ts'
import { mintRegistrationToken } from '../runners/register.ts'
import type { HandlersFor } from './call.ts'

export const pools: HandlersFor<'pools'> = {
  list: async ({ input, caller, deps }) => {
    const after = decodeCursor(input.cursor, /^pool_[0-9a-z]{26}$/)
    const found = await listPools(deps, caller, { after, limit: input.limit + 1 })
    const { rows, nextCursor } = pageOf(found, input.limit, (pool) => pool.id)
    return { runnerPools: rows, nextCursor }
  },

  create: async ({ input, caller, deps }) => ({ runnerPool: await createPool(deps, caller, input.name) }),

  get: missing,
  update: missing,
  delete: missing,
  demand: missing,

  createToken: async ({ input, caller, deps }) => ({
    registrationToken: await mintRegistrationToken(deps, caller, input),
  }),
}

export const runners: HandlersFor<'runners'> = {
  list: async ({ input, caller, deps }) => {
    const after = decodeCursor(input.cursor, /^rnr_[0-9a-z]{26}$/)
    const filter = { orgId: caller.orgId, pool: input.pool, status: input.status, after, limit: input.limit + 1 }
    const { rows, nextCursor } = pageOf(await listRunners(deps, filter), input.limit, (runner) => runner.id)
    return { runners: rows, nextCursor }
  },

  get: async ({ input, caller, deps }) => ({ runner: await getRunner(deps, caller, input.runner) }),

  plan: missing,
  cordon: missing,
  drain: missing,
  resume: missing,
  revoke: missing,
  deregister: missing,
}

function missing(): never {
  throw new Fault('UNAVAILABLE')
}
