import type { OrgEvent, RunEvent } from '@windlass/shared/model/event.ts'
import { ApiError } from '@windlass/shared/ops/api-error.ts'
import { callRoute, openRoute } from '@windlass/shared/ops/call.ts'
import type { Base, CallOptions } from '@windlass/shared/ops/base.ts'
import type { Ops } from '@windlass/shared/ops/index.ts'
import type { ArgsOf, OutputOf, Route } from '@windlass/shared/ops/op.ts'
import { pathNames } from '@windlass/shared/ops/fill-route.ts'
import { askedOnce } from './asked-once.ts'
import { follow } from './follow.ts'
import type { FollowOptions } from './follow.ts'
import { followOrg } from './follow-org.ts'
import type { FollowOrgOptions } from './follow-org.ts'
import { table } from './table.ts'

export { ApiError } from '@windlass/shared/ops/api-error.ts'
export type { ApiErrorCode } from '@windlass/shared/ops/api-error.ts'
export type { CallOptions } from '@windlass/shared/ops/base.ts'
export type { FollowOptions } from './follow.ts'
export type { FollowOrgOptions } from './follow-org.ts'

export interface ClientOptions {
  /** The address of the service, such as `http://127.0.0.1:8787`. */
  url: string
  /** An API key (`wl_…`). */
  apiKey?: string
  /** A session (`wls_…`), for the operations that no API key may do; without an API key for all of them. */
  session?: string
  /**
   * The org meant by every call that does not name another. Left out: the one of the credential, which the service is
   * asked for once.
   */
  org?: string
  /** In place of the global `fetch`: a proxy, a test. */
  fetch?: typeof fetch
  /** Asked when a limit refuses a call (429); when it answers true, it is made again. `follow` has its own way. */
  onLimited?: (error: ApiError, signal: AbortSignal | undefined) => Promise<boolean>
}

/** What a call takes: `org` may be left out, the client knows it. */
export type Args<R> = 'org' extends keyof ArgsOf<R> ? Omit<ArgsOf<R>, 'org'> & { org?: string } : ArgsOf<R>

type Params<R> =
  Record<string, never> extends Args<R>
    ? [args?: Args<R>, options?: CallOptions]
    : [args: Args<R>, options?: CallOptions]

/** One function per row. Homomorphic, so that "go to definition" on `client.runs.cancel` finds the row. */
type Calls<Group, Routes> = {
  [Name in keyof Group]: (
    ...params: Params<Group[Name]>
  ) => Promise<Name extends keyof Routes ? AnswerOf<Group[Name], Routes[Name]> : never>
}
/** What is no JSON is for the caller to read. */
type AnswerOf<R, To> = To extends { readonly wire: string } ? Response : OutputOf<R>

/** The groups that a caller may use; the runner surface is for agents and programs. */
type CallerGroups = Pick<Ops, keyof typeof table>

export type Client = Follows & {
  readonly [Group in keyof CallerGroups]: Calls<CallerGroups[Group], (typeof table)[Group]>
}

interface Follows {
  /**
   * The events of a run as they happen, each exactly once and in order, across broken connections.
   * Ends when the run has ended and its log is read.
   *
   * @example
   * const events = client.follow(run.id, { channels: ['phase', 'log'] })
   * for await (const { type, data } of events) console.log(type, data)
   */
  follow(run: string, options?: FollowOptions): AsyncGenerator<RunEvent, void>
  /**
   * What happens to the runs of the org, live: each event exactly once, those of a run in their order, across
   * broken connections. Ends by its signal.
   *
   * @example
   * for await (const { type, run, workflow } of client.followOrg({ signal })) console.log(workflow, run, type)
   */
  followOrg(options?: FollowOrgOptions): AsyncGenerator<OrgEvent, void>
}

/**
 * A client with a function for each operation of the service.
 *
 * @example
 * const client = createClient({ url: 'http://127.0.0.1:8787', apiKey: process.env.WINDLASS_API_KEY, org: 'default' })
 * const { run } = await client.runs.trigger({ workflow: 'hello', input: { name: 'Ada' } })
 * for await (const event of client.follow(run.id)) console.log(event.type)
 */
export function createClient(options: ClientOptions): Client {
  const { url, fetch } = options
  const base: Base = { url, apiKey: options.apiKey ?? options.session, fetch }
  const asPerson: Base = { ...base, apiKey: options.session ?? options.apiKey }
  const caller: Caller = {
    baseFor: (row) => (row.sessionOnly ? asPerson : base),
    org: orgOnce(base, options),
    onLimited: options.onLimited,
  }
  const made = Object.entries(table).map(([name, group]) => [name, callsOf(caller, group)])
  return {
    ...(Object.fromEntries(made) as Omit<Client, 'follow' | 'followOrg'>),
    follow: (run, following) => follow(base, run, following),
    followOrg: (following) => followOrg(base, (signal) => caller.org({ signal }), following),
  }
}

interface Caller {
  baseFor: (row: Route) => Base
  /** The org of calls that name none. */
  org: (options: CallOptions | undefined) => Promise<string>
  onLimited: ClientOptions['onLimited']
}

function callsOf(caller: Caller, group: object) {
  const rows = Object.entries(group) as [string, Route][]
  return Object.fromEntries(rows.map(([name, row]) => [name, callOf(caller, row)]))
}

function callOf({ baseFor, org, onLimited }: Caller, row: Route) {
  const needsOrg = pathNames(row.path).includes('org')
  const call = row.wire === undefined ? callRoute : openRoute
  return async (args: Record<string, unknown> = {}, options?: CallOptions) => {
    const full = needsOrg ? { ...args, org: args['org'] ?? (await org(options)) } : args
    return again(() => call(baseFor(row), row, full, options), onLimited, options?.signal)
  }
}

/** What a limit refuses has not been done, so it can be sent again whatever it is. */
async function again<T>(
  call: () => Promise<T>,
  onLimited: ClientOptions['onLimited'],
  signal?: AbortSignal,
): Promise<T> {
  for (;;) {
    try {
      return await call()
    } catch (error) {
      const isLimited = error instanceof ApiError && error.status === 429
      if (!isLimited || !(await onLimited?.(error, signal))) throw error
    }
  }
}

/** A credential is of one org. */
function orgOnce(base: Base, { org: given, onLimited }: ClientOptions): Caller['org'] {
  if (given !== undefined) return () => Promise.resolve(given)
  const row = table.account.get
  return askedOnce(base, row, async (signal) => {
    const answer = await again(() => callRoute(base, row, {}, { signal }), onLimited, signal)
    return (answer as OutputOf<Ops['account']['get']>).me.org.slug
  })
}
