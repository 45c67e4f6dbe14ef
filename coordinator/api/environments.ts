import { createEnvironment, deleteEnvironment, listEnvironments } from '../environments/environments.ts'
import { deleteSecret, listSecrets, setSecret } from '../environments/secrets.ts'
import { deleteVariable, listVariables, setVariable } from '../environments/variables.ts'
import type { HandlersFor } from './call.ts'
import { decodeCursor, pageOf } from './page.ts'

const SLUG = /^[a-z0-9-]{1,63}$/
const NAME = /^[A-Za-z0-9_]{1,128}$/

export const environments: HandlersFor<'environments'> = {
  list: async ({ input: { cursor, limit }, caller, deps }) => {
    const after = decodeCursor(cursor, SLUG)
    const { rows, nextCursor } = pageOf(
      await listEnvironments(deps, caller, { after, limit: limit + 1 }),
      limit,
      (row) => row.name,
    )
    return { environments: rows, nextCursor }
  },

  create: async ({ input, caller, deps }) => ({ environment: await createEnvironment(deps, caller, input.name) }),

  delete: async ({ input, caller, deps }) => {
    await deleteEnvironment(deps, caller, input.environment)
    return {}
  },
}

export const variables: HandlersFor<'variables'> = {
  list: async ({ input: { environment, cursor, limit }, caller, deps }) => {
    const page = { after: decodeCursor(cursor, NAME), limit: limit + 1 }
    const found = await listVariables(deps, { orgId: caller.orgId, environment }, page)
    const { rows, nextCursor } = pageOf(found, limit, (row) => row.name)
    return { variables: rows, nextCursor }
  },

  set: async ({ input, caller, deps }) => ({ variable: await setVariable(deps, caller, input) }),

  delete: async ({ input, caller, deps }) => {
    await deleteVariable(deps, caller, input)
    return {}
  },
}

export const secrets: HandlersFor<'secrets'> = {
  list: async ({ input: { environment, cursor, limit }, caller, deps }) => {
    const page = { after: decodeCursor(cursor, NAME), limit: limit + 1 }
    const found = await listSecrets(deps, { orgId: caller.orgId, environment }, page)
    const { rows, nextCursor } = pageOf(found, limit, (row) => row.name)
    return { secrets: rows, nextCursor }
  },

  set: async ({ input, caller, deps }) => ({ secret: await setSecret(deps, caller, input) }),

  delete: async ({ input, caller, deps }) => {
    await deleteSecret(deps, caller, input)
    return {}
  },
}
