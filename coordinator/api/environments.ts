import { createEnvironment, deleteEnvironment, listEnvironments } from '../environments/environments.ts'
import { deleteSecret, listSecrets, setSecret } from '../environments/secrets.ts'
import { deleteVariable, listVariables, setVariable } from '../environments/variables.ts'
import type { HandlersFor } from './call.ts'
import { decodeCursor, pageOf } from './page.ts'
import type { Needs } from '@windlass/shared/needs.ts'

const SLUG = /^[a-z0-9-]{1,63}$/
const NAME = /^[A-Za-z0-9_]{1,128}$/

type EnvironmentsNeeds = Needs<typeof createEnvironment | typeof deleteEnvironment | typeof listEnvironments>

export const environments = (deps: EnvironmentsNeeds): HandlersFor<'environments'> => ({
  list: async ({ input: { cursor, limit }, caller }) => {
    const after = decodeCursor(cursor, SLUG)
    const { rows, nextCursor } = pageOf(
      await listEnvironments(deps, caller, { after, limit: limit + 1 }),
      limit,
      (row) => row.name,
    )
    return { environments: rows, nextCursor }
  },

  create: async ({ input, caller }) => ({ environment: await createEnvironment(deps, caller, input.name) }),

  delete: async ({ input, caller }) => {
    await deleteEnvironment(deps, caller, input.environment)
    return {}
  },
})

type VariablesNeeds = Needs<typeof deleteVariable | typeof listVariables | typeof setVariable>

export const variables = (deps: VariablesNeeds): HandlersFor<'variables'> => ({
  list: async ({ input: { environment, cursor, limit }, caller }) => {
    const page = { after: decodeCursor(cursor, NAME), limit: limit + 1 }
    const found = await listVariables(deps, { orgId: caller.orgId, environment }, page)
    const { rows, nextCursor } = pageOf(found, limit, (row) => row.name)
    return { variables: rows, nextCursor }
  },

  set: async ({ input, caller }) => ({ variable: await setVariable(deps, caller, input) }),

  delete: async ({ input, caller }) => {
    await deleteVariable(deps, caller, input)
    return {}
  },
})

type SecretsNeeds = Needs<typeof deleteSecret | typeof listSecrets | typeof setSecret>

export const secrets = (deps: SecretsNeeds): HandlersFor<'secrets'> => ({
  list: async ({ input: { environment, cursor, limit }, caller }) => {
    const page = { after: decodeCursor(cursor, NAME), limit: limit + 1 }
    const found = await listSecrets(deps, { orgId: caller.orgId, environment }, page)
    const { rows, nextCursor } = pageOf(found, limit, (row) => row.name)
    return { secrets: rows, nextCursor }
  },

  set: async ({ input, caller }) => ({ secret: await setSecret(deps, caller, input) }),

  delete: async ({ input, caller }) => {
    await deleteSecret(deps, caller, input)
    return {}
  },
})
