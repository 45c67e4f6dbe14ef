import {
  createConnection,
  deleteConnection,
  getConnection,
  listConnections,
  needConnection,
  setConnectionSecret,
  updateConnection,
} from '../inbound/connections.ts'
import { listDeliveries } from '../inbound/deliveries.ts'
import { testConnection } from '../inbound/try-connection.ts'
import type { HandlersFor } from './call.ts'
import { addressOf } from './hooks.ts'
import { decodeCursor, pageOf } from './page.ts'
import type { Needs } from '@windlass/shared/needs.ts'

type ConnectionsNeeds = Needs<
  | typeof createConnection
  | typeof deleteConnection
  | typeof getConnection
  | typeof listConnections
  | typeof listDeliveries
  | typeof needConnection
  | typeof setConnectionSecret
  | typeof testConnection
  | typeof updateConnection
> & { config: { baseUrl: string | undefined } }

export const connections = (deps: ConnectionsNeeds): HandlersFor<'connections'> => ({
  create: async (call) => {
    const { org: _, ...ask } = call.input
    return createConnection(deps, call.caller, ask, addressOf(deps, call))
  },

  list: async (call) => {
    const { cursor, limit } = call.input
    const after = decodeCursor(cursor, /^[^\p{Cc}]{1,100}$/u)
    const found = await listConnections(deps, call.caller, { after, limit: limit + 1 }, addressOf(deps, call))
    const { rows, nextCursor } = pageOf(found, limit, (row) => row.name)
    return { connections: rows, nextCursor }
  },

  get: async (call) => ({
    connection: await getConnection(deps, call.caller, call.input.connection, addressOf(deps, call)),
  }),

  update: async (call) => ({
    connection: await updateConnection(deps, call.caller, call.input, addressOf(deps, call)),
  }),

  delete: async ({ input, caller }) => {
    await deleteConnection(deps, caller, input.connection)
    return {}
  },

  setSecret: async (call) => setConnectionSecret(deps, call.caller, call.input, addressOf(deps, call)),

  test: async ({ input, caller }) => ({ test: await testConnection(deps, caller, input) }),

  deliveries: async ({ input, caller }) => {
    const { connection, cursor, limit } = input
    await needConnection(deps, caller, connection)
    const before = decodeCursor(cursor, /^dlv_[0-9a-z]{26}$/)
    const ask = { orgId: caller.orgId, sourceId: connection, before, limit }
    const { deliveries, fitting } = await listDeliveries(deps, ask)
    const { rows, nextCursor } = pageOf(deliveries, fitting, (row) => row.id)
    return { deliveries: rows, nextCursor }
  },
})
