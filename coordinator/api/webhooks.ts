import { getWebhook, rotateWebhook, setWebhook } from '../inbound/webhooks.ts'
import { needWorkflow } from '../workflows/read.ts'
import type { HandlersFor } from './call.ts'
import { addressOf } from './hooks.ts'
import type { Needs } from '@windlass/shared/needs.ts'

type WebhooksNeeds = Needs<typeof getWebhook | typeof needWorkflow | typeof rotateWebhook | typeof setWebhook> & {
  config: { baseUrl: string | undefined }
}

export const webhooks = (deps: WebhooksNeeds): HandlersFor<'webhooks'> => ({
  get: async (call) => {
    const { id } = await needWorkflow(deps, call.caller.orgId, call.input.workflow)
    return { webhook: await getWebhook(deps, call.caller, id, addressOf(deps, call)) }
  },

  set: async (call) => {
    const { workflow, auth } = call.input
    const { id } = await needWorkflow(deps, call.caller.orgId, workflow)
    return { webhook: await setWebhook(deps, call.caller, { workflowId: id, auth }, addressOf(deps, call)) }
  },

  rotate: async (call) => {
    const { workflow, overlapMs } = call.input
    const { id } = await needWorkflow(deps, call.caller.orgId, workflow)
    return rotateWebhook(deps, call.caller, { workflowId: id, overlapMs }, addressOf(deps, call))
  },
})
