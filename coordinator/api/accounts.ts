import { countSchedulesOf } from '../schedules/schedules.ts'
import { createKey, listKeys, revokeKey } from '../accounts/api-keys.ts'
import type { Callers } from '../accounts/callers.ts'
import { getOrg } from '../accounts/orgs.ts'
import type { HandlersFor } from './call.ts'
import { decodeCursor, pageOf } from './page.ts'
import type { Db } from '../db/client.ts'
import { getRetention, type Limits, updateRetention } from '../retention/retention.ts'
import type { Needs } from '@windlass/shared/needs.ts'

type KeysNeeds = Needs<typeof listKeys | typeof revokeKey> & { db: Db; callers: Pick<Callers, 'hold'> }

export const keys = (deps: KeysNeeds): HandlersFor<'keys'> => ({
  list: async ({ input, caller }) => {
    const before = decodeCursor(input.cursor, /^key_[0-9a-z]{26}$/)
    const found = await listKeys(deps, caller.orgId, { before, limit: input.limit + 1 })
    const { rows, nextCursor } = pageOf(found, input.limit, (key) => key.id)
    return { apiKeys: rows, nextCursor }
  },

  create: ({ input: { org: _, ...ask }, caller }) =>
    createKey(deps.db, caller, ask, (tx) => deps.callers.hold(tx, caller)),

  revoke: async ({ input, caller }) => {
    const { registrationTokens, jobs } = await revokeKey(deps, caller, input.key)
    return { schedules: await countSchedulesOf(deps, caller.orgId, input.key), registrationTokens, jobs }
  },
})

type OrgsNeeds = { db: Db }

export const orgs = (deps: OrgsNeeds): HandlersFor<'orgs'> => ({
  get: async ({ caller }) => ({ org: await getOrg(deps.db, caller.orgId) }),
})

type RetentionNeeds = { db: Db; config: Limits }

export const retention = (deps: RetentionNeeds): HandlersFor<'retention'> => ({
  get: async ({ caller }) => ({ retention: await getRetention(deps, caller.orgId) }),

  update: async ({ input, caller }) => ({ retention: await updateRetention(deps, caller, input) }),
})

type AccountNeeds = { db: Db }

export const account = (deps: AccountNeeds): HandlersFor<'account'> => ({
  get: async ({ caller }) => {
    const { kind, id, name, role, scopes } = caller
    const credential = { kind, id, name, role, scopes: [...scopes] }
    return { me: { credential, org: await getOrg(deps.db, caller.orgId) } }
  },
})
