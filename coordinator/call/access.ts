import { Fault } from '@windlass/shared/errors.ts'
import type { Actor, Caller, ProgramIdentity, RunnerIdentity } from '../actor.ts'
import type { Gate } from './gate.ts'
import type { Plan } from './plan.ts'

/** Who stands behind a credential, door by door. Each throws UNAUTHENTICATED for one that does not serve. */
export interface Verifiers {
  /** Whether a credential served not long ago: at the other doors nothing is looked up for one that is made up. */
  knows(door: 'caller' | 'runner', bearer: string): boolean
  caller(bearer: string): Promise<Caller>
  runner(bearer: string): Promise<RunnerIdentity>
  program(bearer: string): Promise<ProgramIdentity>
}

/** Who knocks at the door of the row, or throws. At the public door nobody is asked. */
export async function identify(
  { row }: Plan,
  authorization: string | undefined,
  ask: Asked,
): Promise<Actor | undefined> {
  const { door } = row
  if (door === 'public') return undefined
  const bearer = bearerOf(authorization)
  // The token of a run is checked by its signature: without that nothing is looked up.
  if (door === 'program') return ask.verify.program(bearer)
  const { verify, gate, address, requestId } = ask
  const shown = { as: door, address, requestId, isKnown: () => verify.knows(door, bearer) }
  return gate.pass<Actor>(shown, () => verify[door](bearer))
}

interface Asked {
  verify: Verifiers
  gate: Gate
  /** Address of the client. */
  address: string
  requestId: string
}

type Headers = Readonly<Record<string, string | undefined>>

/** Lets the actor through to the org or run that the path names, or throws. */
export function admit(
  plan: Plan,
  params: Record<string, string>,
  actor: Actor | undefined,
  headers: Headers = {},
): void {
  if (actor?.kind === 'program' && plan.scopedToRun && params['run'] !== actor.runId) throw new Fault('NOT_FOUND')
  if (!isCaller(actor)) return
  // Before the role: a stranger must not learn from a 403 that the org exists.
  if (!plan.scopedToOrg) assertOrg(headers, actor)
  else if (params['org'] !== actor.org) throw new Fault('NOT_FOUND')
}

/** Where the path carries no org a header may name it. A credential stands for one: whoever means another is told. */
export function assertOrg(headers: Headers, caller: Caller): void {
  for (const name of ['x-windlass-org', 'x-service-org']) {
    const org = headers[name]
    if (org !== undefined && org !== caller.org)
      throw new Fault('NOT_FOUND', { org }, `This credential has no org \`${org}\`.`)
  }
}

export function isCaller(actor: Actor | undefined): actor is Caller {
  return actor?.kind === 'key' || actor?.kind === 'session'
}

export function bearerOf(authorization: string | undefined): string {
  const bearer = authorization === undefined ? undefined : /^bearer +(\S+) *$/i.exec(authorization)?.[1]
  if (bearer === undefined) throw new Fault('UNAUTHENTICATED')
  return bearer
}
