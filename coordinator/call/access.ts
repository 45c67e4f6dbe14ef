import { Fault } from '@windlass/shared/errors.ts'
import { isForCallers, isPublic } from '@windlass/shared/ops/op.ts'
import type { Actor, Caller, ProgramIdentity, RunnerIdentity } from '../actor.ts'
import type { Gate } from './gate.ts'
import type { Plan } from './plan.ts'

/** A function for each kind of credential finds who stands behind it, or throws UNAUTHENTICATED. */
export interface Verifiers {
  /** Whether a credential served not long ago. Of a run's token nothing is looked up: it is signed. */
  knows(as: 'caller' | 'runner', token: string): boolean
  caller(token: string): Promise<Caller>
  runner(token: string): Promise<RunnerIdentity>
  program(token: string): Promise<ProgramIdentity>
}

/** Finds who asks, or throws. Nobody is looked up where anybody may ask. */
export async function identify(
  { row }: Plan,
  authorization: string | undefined,
  ask: Asked,
): Promise<Actor | undefined> {
  if (isPublic(row)) return undefined
  const token = tokenOf(authorization)
  // The token of a run is checked by its signature: without that nothing is looked up.
  if (row.credentials.includes('run')) return ask.verify.program(token)
  const { verify, gate, address, requestId } = ask
  const as = isForCallers(row) ? 'caller' : 'runner'
  const shown = { as, address, requestId, isKnown: () => verify.knows(as, token) }
  return gate.pass<Actor>(shown, () => verify[as](token))
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

export function tokenOf(authorization: string | undefined): string {
  const token = authorization === undefined ? undefined : /^bearer +(\S+) *$/i.exec(authorization)?.[1]
  if (token === undefined) throw new Fault('UNAUTHENTICATED')
  return token
}
