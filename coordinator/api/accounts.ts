import { createKey, listKeys, revokeKey } from '../accounts/api-keys.ts'
import { getOrg } from '../accounts/orgs.ts'
import type { HandlersFor } from './call.ts'
import { decodeCursor, pageOf } from './page.ts'

export const keys: HandlersFor<'keys'> = {
  list: async ({ input, caller, deps }) => {
    const before = decodeCursor(input.cursor, /^key_[0-9a-z]{26}$/)
    const found = await listKeys(deps, caller.orgId, { before, limit: input.limit + 1 })
    const { rows, nextCursor } = pageOf(found, input.limit, (key) => key.id)
    return { apiKeys: rows, nextCursor }
  },

  create: ({ input: { org: _, ...ask }, caller, deps }) => createKey(deps.db, caller, ask),

  revoke: async ({ input, caller, deps }) => {
    await revokeKey(deps, caller, input.key)
    return {}
  },
}

export const orgs: HandlersFor<'orgs'> = {
  get: async ({ caller, deps }) => ({ org: await getOrg(deps.db, caller.orgId) }),
}

export const account: HandlersFor<'account'> = {
  get: async ({ caller, deps }) => {
    const { kind, id, name, role, scopes } = caller
    const credential = { kind, id, name, role, scopes: [...scopes] }
    return { me: { credential, org: await getOrg(deps.db, caller.orgId) } }
  },
}
