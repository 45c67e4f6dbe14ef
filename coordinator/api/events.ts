import type { Needs } from '@windlass/shared/needs.ts'
import { orgStream } from '../events/org-stream.ts'
import { type HandlersFor, SseAnswer } from './call.ts'

type EventsNeeds = Needs<typeof orgStream>

export const events = (deps: EventsNeeds): HandlersFor<'events'> => ({
  // What a browser sends when it reconnects by itself; it knows better than the address it was first given.
  stream: async (call) => {
    const since = call.header('last-event-id') ?? call.input.since
    return new SseAnswer(await orgStream(deps, call.caller.orgId, since))
  },
})
