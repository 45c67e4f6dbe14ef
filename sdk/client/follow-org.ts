import type { OrgEvent } from '@windlass/shared/model/event.ts'
import { ApiError } from '@windlass/shared/ops/api-error.ts'
import type { Base } from '@windlass/shared/ops/base.ts'
import { openRoute } from '@windlass/shared/ops/call.ts'
import { acrossConnections, dataOf } from './across-connections.ts'
import type { ReconnectOptions, Source } from './across-connections.ts'
import { table } from './table.ts'

export interface FollowOrgOptions extends ReconnectOptions {
  /** The org, when it is not the one of the credential. */
  org?: string
  /** The `position` of the last event that was read; left out: from now on. */
  since?: string
  /**
   * Told the position from which on nothing is missed: at the beginning, and where events were gone. What it throws
   * ends the iteration.
   */
  onReady?: (position: string, isReset: boolean) => void
}

/**
 * What happens to the runs of an org, each event exactly once, those of a run in their order, across broken
 * connections. It goes on until its signal ends it.
 */
export function followOrg(base: Base, org: OrgOf, options: FollowOrgOptions = {}): AsyncGenerator<OrgEvent, void> {
  const given = options.org
  return acrossConnections(sourceOf(base, given === undefined ? org : async () => given, options), options)
}

type OrgOf = (signal: AbortSignal | undefined) => Promise<string>

function sourceOf(base: Base, org: OrgOf, { since, onReady }: FollowOrgOptions): Source<OrgEvent> {
  let position = since
  let isSaid = false
  return {
    where: () => `${base.url} while following the events of an org at ${position ?? 'their end'}`,
    isDone: () => false,
    async open({ signal, deadlineMs }) {
      const args = { org: await org(signal), ...(position !== undefined && { since: position }) }
      return openRoute(base, table.events.stream, args, {
        signal,
        deadlineMs,
        headers: { accept: 'text/event-stream' },
      })
    },
    take(frame, url) {
      // The server has lost sight of the log, and begins it anew with the next connection.
      if (frame.event === 'done') return undefined
      if (!frame.id) throw new ApiError(`${url} sent an event without an id`, { status: 200, code: 'BAD_ANSWER' })
      position = frame.id
      const isReset = frame.event === 'reset'
      if (!isReset && frame.event !== 'ready')
        return { position, ...(dataOf(frame, url) as Omit<OrgEvent, 'position'>) }
      const reached = position
      if (isReset || !isSaid) onReady?.(reached, isReset)
      isSaid = true
      return undefined
    },
  }
}
