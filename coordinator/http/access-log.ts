import type { Log } from '@windlass/shared/log.ts'
import type { Outlet } from './answer.ts'
import type { Proxies } from './proxies.ts'

/** What is known of a request that has been answered, or given up. */
export interface Answered {
  /** Path of the operation, with names in place of values: values may be private. */
  route: string | undefined
  /** Id of the caller, runner or run that asked. */
  actor: string | undefined
  /** Arrival time, by `performance.now()`. */
  since: number
}

/** Writes a line for each request. Of what was sent there is nothing in it but the method. */
export function createAccessLog(log: Log, proxies: Proxies) {
  return ({ request, requestId, sent }: Outlet, { route, actor, since }: Answered): void => {
    log('http.request', {
      method: request.method,
      route,
      // Left out when the client had gone before.
      status: sent?.status,
      bytes: sent?.bytes,
      ms: Math.round((performance.now() - since) * 10) / 10,
      address: proxies.addressOf(request),
      actor,
      requestId,
    })
  }
}
