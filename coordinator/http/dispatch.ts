import { setImmediate } from 'node:timers/promises'
import { Fault } from '@windlass/shared/errors.ts'
import type { Log } from '@windlass/shared/log.ts'
import { isPublic } from '@windlass/shared/ops/op.ts'
import type { Actor, Caller } from '../actor.ts'
import type { Config } from '../config.ts'
import { isLongAgo } from '../stay.ts'
import type { BytesInFlight } from '../limits/bytes-in-flight.ts'
import type { Limits } from '../limits/limits.ts'
import type { Seats } from '../limits/seats.ts'
import type { SmallBodies } from '../limits/small-bodies.ts'
import { admit, identify, isCaller, type Verifiers } from '../call/access.ts'
import type { Answered } from './access-log.ts'
import { type Outlet, sendFault } from './answer.ts'
import { sendValue } from './answer-value.ts'
import type { HttpRequest, HttpResponse } from '../call/exchange.ts'
import { handle, type Turns } from '../call/handle.ts'
import { deprecationHeaders } from './deprecation.ts'
import { faultFor, ofTheUnbegun } from '../call/failures.ts'
import type { ProgramRequests } from '../limits/program-requests.ts'
import type { Waiting } from '../limits/waiting.ts'
import { assertFraming } from './framing.ts'
import type { Gate } from '../call/gate.ts'
import { inTime, isSmall, mayBeLarge, roomFor, smallRoomFor } from './held-body.ts'
import { RawBody } from './raw-body.ts'
import { readInput, readParams } from '../call/input.ts'
import type { OpenWork } from './open-work.ts'
import { authorizeFor, type OwnedNeeds } from '../call/owned.ts'
import type { PathPlan, Plan } from '../call/plan.ts'
import type { Proxies } from './proxies.ts'
import { RequestCall } from './request-call.ts'
import { requestIdOf } from './request-id.ts'
import type { Room } from '../call/room.ts'
import type { RequestTurns } from './request-turns.ts'
import type { OneByOne } from './one-by-one.ts'
import type { Unsent } from './unsent.ts'

/** What is needed of a request, whatever it asks. */
export type PipelineNeeds = OwnedNeeds & {
  config: Config
  log: Log
  limits: Limits
  bodies: BytesInFlight
  /** Of bodies whose sender has proved nothing yet. */
  deliveryBodies: BytesInFlight
  turns: Turns
}

export interface Pipeline {
  deps: PipelineNeeds
  log: Log
  verify: Verifiers
  gate: Gate
  proxies: Proxies
  waiting: Waiting
  /** Memory of large bodies that have become values. */
  values: Seats
  /** The same for MCP, whose calls may last as long as a compiler. */
  mcpValues: Seats
  /** The same of small bodies. */
  smallBodies: SmallBodies
  mcpSmallBodies: SmallBodies
  requestTurns: RequestTurns
  runnerTurns: OneByOne
  mcpTurns: OneByOne
  programs: ProgramRequests
  /** Writes the access log; undefined when it is off. */
  access: ((outlet: Outlet, answered: Answered) => void) | undefined
  open: OpenWork
  unsent: Unsent
  strict: boolean
  /** How long the reader of a stream may stall, and how often it is looked at whether one may read on. */
  stallMs: number
  recheckMs: number
  /** Told of answers whose request is still coming in: see `Unread`. */
  unread: { add(response: HttpResponse): void }
}

/** What comes in: one request, and the place for its answer. */
export interface Arrival {
  request: HttpRequest
  response: HttpResponse
  /** True when the connection may become a WebSocket. */
  isUpgrade?: boolean
}

interface Exchange extends Outlet {
  readonly pipeline: Pipeline
  readonly isUpgrade: boolean
  /** What was asked, once it has been read. */
  input?: unknown
  /** Id of the caller, runner or run that asked. */
  actor?: string
  /** Its handler has been called. */
  hasBegun?: boolean
}

/** The way of every request. Settles always: whatever happens becomes an answer, or a closed connection. */
export async function dispatch(
  pipeline: Pipeline,
  path: PathPlan | undefined,
  { request, response, isUpgrade = false }: Arrival,
): Promise<void> {
  const turn = pipeline.requestTurns.next()
  if (turn) await turn
  // The connection has ended meanwhile.
  if (response.completed) return
  const requestId = requestIdOf(request.headers['x-request-id'])
  const exchange: Exchange = {
    pipeline,
    request,
    response,
    isUpgrade,
    requestId,
    open: pipeline.open,
    unsent: pipeline.unsent,
    headers: [],
    isLast: true,
  }
  const since = performance.now()
  let plan: Plan | undefined
  try {
    assertFraming(request)
    exchange.isLast = false
    // An upgrade is a GET by definition; hyper-express gives its method another name.
    plan = path?.methods[isUpgrade ? 'GET' : request.method]
    if (plan?.row.deprecated) exchange.headers = deprecationHeaders(plan.row.deprecated)
    if (plan) await serve(exchange, plan)
    else throw noSuchPlan(path)
  } catch (error) {
    // Until then the request is pending: what follows it in the same packet is cut by µWS, not taken for the next one.
    if (exchange.isLast) await setImmediate()
    refuse(exchange, path, plan, error)
  }
  pipeline.access?.(exchange, { route: path?.path, actor: exchange.actor, since })
}

async function serve(exchange: Exchange, plan: Plan): Promise<void> {
  const { pipeline, request } = exchange
  const params = readParams(plan, request)
  const actor = await identify(plan, request.headers['authorization'], asked(exchange))
  if (actor) {
    exchange.actor = actor.kind === 'program' ? actor.runId : actor.id
    exchange.orgId = actor.orgId
  }
  // Before the role: who is refused time and again is limited too.
  if (isCaller(actor)) await limit(exchange, actor)
  if (actor?.kind === 'runner') await pipeline.runnerTurns.next(actor.id)
  if (actor?.kind === 'program') pipeline.programs.take(actor)
  admit(plan, params, actor, request.headers)
  if (isCaller(actor)) await authorizeFor(plan, actor, pipeline.deps, params)
  if (plan.row.wire === 'socket' && !exchange.isUpgrade) throw new Fault('UPGRADE_REQUIRED')
  if (plan.row.body === 'raw') return answerRaw(exchange, plan, params)
  const room = roomOf(exchange, actor)
  if (!room) return answer(exchange, plan, { actor, params })
  try {
    await answer(exchange, plan, { actor, params, room })
  } finally {
    room.release()
  }
}

/** What agents send is not bounded here: a caller of their org must not keep their runs from ending. */
function roomOf({ pipeline, request, response }: Exchange, actor: Actor | undefined): Room | undefined {
  const { deps, values, smallBodies: small } = pipeline
  if (isCaller(actor) && mayBeLarge(request)) return roomFor({ ...deps, values, small }, actor.orgId, response)
  if (!isSmall(request) || !actor || actor.kind === 'runner') return undefined
  // Those of runs are counted apart: callers cannot keep them waiting.
  const as = actor.kind === 'program' ? `runs of ${actor.orgId}` : actor.orgId
  return smallRoomFor(small, actor.orgId, response, as)
}

/** The handler reads the body, as it is the body that proves whose it is. */
async function answerRaw(exchange: Exchange, plan: Plan, params: Record<string, string>): Promise<void> {
  const { pipeline, request, response } = exchange
  const address = pipeline.proxies.addressOf(request)
  const raw = new RawBody({ request, response, address, bodies: pipeline.deps.deliveryBodies, limit: plan.bodyBytes })
  try {
    await answer(exchange, plan, { actor: undefined, params, raw })
  } finally {
    raw.release()
  }
}

interface Admitted {
  actor: Actor | undefined
  params: Record<string, string>
  room?: Room
  raw?: RawBody
}

async function answer(exchange: Exchange, plan: Plan, { actor, params, room, raw }: Admitted): Promise<void> {
  const { pipeline, request, response, requestId, open } = exchange
  const { proxies } = pipeline
  const { baseUrl } = pipeline.deps.config
  const since = performance.now()
  const read = (space?: Room) => readInput(plan, request, params, space)
  const input = await (room && mayBeLarge(request) ? inTime(response, room, read) : read(room))
  exchange.input = input
  const stay = () => identifyAgain(exchange, plan)
  // Of a slow body the end comes minutes later than the credential.
  if (actor && isLongAgo(since)) await stay()
  const leave = isCaller(actor) && isLong(plan, input) ? pipeline.waiting.enter(actor) : undefined
  const call = new RequestCall({ input, actor, requestId, request, response, baseUrl, open, proxies, stay, raw })
  try {
    exchange.hasBegun = true
    const value: unknown = await (actor
      ? handle(plan, call as never, { turns: pipeline.deps.turns, orgId: actor.orgId })
      : handled(exchange, plan, call))
    if (!response.completed) await sendValue(exchange, plan, value, () => mayStay(exchange, plan))
  } finally {
    call.settled()
    leave?.()
  }
}

/** Whether the answer may take as long as its reader likes. */
function isLong({ row }: Plan, input: unknown): boolean {
  return row.wire === 'sse' || Boolean((input as { waitMs?: number }).waitMs)
}

function asked({ pipeline, request, requestId }: Exchange) {
  const { verify, gate, proxies } = pipeline
  return { verify, gate, address: proxies.addressOf(request), requestId }
}

/** A registration token comes in the body of a row for anybody. */
async function handled(exchange: Exchange, plan: Plan, call: RequestCall): Promise<unknown> {
  if (!isPublic(plan.row) || !plan.faults.has('UNAUTHENTICATED')) return plan.handle(call as never)
  const { pipeline, request, requestId } = exchange
  const shown = { as: plan.row.id, address: pipeline.proxies.addressOf(request), requestId, isKnown: () => false }
  return pipeline.gate.pass(shown, () => plan.handle(call as never))
}

async function limit(exchange: Exchange, caller: Caller): Promise<void> {
  const { refusal, headers } = await exchange.pipeline.deps.limits.take(caller)
  exchange.headers = [...exchange.headers, ...headers]
  if (refusal) throw refusal
}

/**
 * Throws when the credential serves no more, which may have been revoked or have expired since. It has served, so
 * refusals of others from its address do not keep it from being looked up.
 */
async function identifyAgain(exchange: Exchange, plan: Plan): Promise<void> {
  const { verify, ...rest } = asked(exchange)
  await identify(plan, exchange.request.headers['authorization'], { ...rest, verify: { ...verify, knows: () => true } })
}

/** Whether the credential still serves. What cannot be found out now, can be later. */
async function mayStay(exchange: Exchange, plan: Plan): Promise<boolean> {
  try {
    await identifyAgain(exchange, plan)
    return true
  } catch (error) {
    return !(error instanceof Fault && error.code === 'UNAUTHENTICATED')
  }
}

function noSuchPlan(path: PathPlan | undefined): Fault {
  return path ? new Fault('METHOD_NOT_ALLOWED', { allow: path.allow.split(', ') }) : new Fault('NOT_FOUND')
}

function refuse(exchange: Exchange, path: PathPlan | undefined, plan: Plan | undefined, error: unknown): void {
  const { pipeline, request, response, requestId } = exchange
  const { log, strict } = pipeline
  try {
    const fault = faultFor(error, { plan, requestId, log, strict, input: exchange.input })
    if (fault === undefined || response.completed) return
    // Headers are out already: all that can still be said is that this is not the end of the answer.
    if (response.initiated) return void response.close()
    const answered = exchange.hasBegun ? fault : ofTheUnbegun(fault, plan)
    sendFault(exchange, answered, fault.code === 'METHOD_NOT_ALLOWED' ? path?.allow : undefined)
    if (!request.received) pipeline.unread.add(response)
  } catch (unsendable) {
    log.error('http.unsendable', { requestId, error: unsendable })
    response.close()
  }
}
