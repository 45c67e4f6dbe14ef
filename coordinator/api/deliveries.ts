import { findConnectionId } from '../inbound/connections.ts'
import { getDelivery, listDeliveries, payloadOf } from '../inbound/deliveries.ts'
import { replayDelivery } from '../inbound/replay.ts'
import { findWorkflow } from '../workflows/read.ts'
import { BytesAnswer, type HandlersFor, PiecesAnswer } from './call.ts'
import { addressOf } from './hooks.ts'
import { keyIn, made } from './keyed.ts'
import { decodeCursor, pageOf } from './page.ts'
import type { Needs } from '@windlass/shared/needs.ts'

type DeliveriesNeeds = Needs<
  | typeof findConnectionId
  | typeof findWorkflow
  | typeof getDelivery
  | typeof listDeliveries
  | typeof payloadOf
  | typeof replayDelivery
> & { config: { baseUrl: string | undefined } }

export const deliveries = (deps: DeliveriesNeeds): HandlersFor<'deliveries'> => ({
  list: async ({ input, caller }) => {
    const { org: _, workflow, connection, cursor, limit, ...filter } = input
    const workflowId = workflow === undefined ? undefined : (await findWorkflow(deps, caller.orgId, workflow))?.id
    const sourceId = connection === undefined ? undefined : await findConnectionId(deps, caller.orgId, connection)
    if ((workflow !== undefined && !workflowId) || (connection !== undefined && !sourceId))
      return { deliveries: [], nextCursor: null }
    const before = decodeCursor(cursor, /^dlv_[0-9a-z]{26}$/)
    const ask = { ...filter, orgId: caller.orgId, workflowId, sourceId, before, limit }
    const { deliveries: found, fitting } = await listDeliveries(deps, ask)
    const { rows, nextCursor } = pageOf(found, fitting, (row) => row.id)
    return { deliveries: rows, nextCursor }
  },

  get: async ({ input, caller }) => ({ delivery: await getDelivery(deps, caller, input.delivery) }),

  payload: async ({ input, caller }) => {
    const found = await payloadOf(deps, caller, input.delivery)
    // Nobody knows who wrote it: no browser is to show it as a page of ours.
    const headers = { 'content-disposition': 'attachment', 'content-security-policy': 'sandbox' }
    if (found.bytes) return new BytesAnswer(found.bytes, found.contentType, { headers })
    const { pieces, contentType, length, cut } = found
    return new PiecesAnswer(pieces, contentType, { bytes: length, headers, cut })
  },

  replay: async (call) => {
    const { baseUrl, base } = addressOf(deps, call)
    return made(await replayDelivery(deps, call, { ...call.input, base: baseUrl ?? base, key: keyIn(call) }))
  },
})
