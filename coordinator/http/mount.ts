import { setImmediate } from 'node:timers/promises'
import { Fault } from '@windlass/shared/errors.ts'
import type { Log } from '@windlass/shared/log.ts'
import type { Caller } from '../actor.ts'
import { MCP_METADATA_PATH, MCP_PATH } from '../api/base-url.ts'
import type { Handlers } from '../api/index.ts'
import type { Config } from '../config.ts'
import type { Asking } from '../mcp/asking.ts'
import { createHosts, type Hosts } from '../hosts.ts'
import type { Mcp } from '../mcp/server.ts'
import type { Surface } from '../mcp/surface.ts'
import manifest from '../package.json' with { type: 'json' }
import { assertOrg, tokenOf } from '../call/access.ts'
import { begin, end, type Outlet, sendFault } from './answer.ts'
import { readJson } from '../call/body.ts'
import { inTime, roomFor } from './held-body.ts'
import type { Room } from '../call/room.ts'
import type { Arrival, Pipeline } from './dispatch.ts'
import { faultFor } from '../call/failures.ts'
import { assertFraming } from './framing.ts'
import { RequestCall } from './request-call.ts'
import { requestIdOf } from './request-id.ts'

/** What stands behind /mcp/v1. */
export interface Mounted {
  hosts: Hosts
  /** Loaded with the first request that gets so far: most of it is a library, which every start would wait for. */
  readonly load: () => Promise<{ mcp: Mcp; surface: Surface }>
}

export interface MountOptions {
  handlers: Handlers
  config: Config
  log: Log
  /** What MCP shows: the operations, unless a test has something else to show. */
  surface: Surface | undefined
}

export function mountedMcp({ handlers, config, log, surface: given }: MountOptions): Mounted {
  let loaded: ReturnType<Mounted['load']> | undefined
  const load = async () => {
    const [{ createMcp }, { createSurface }] = await Promise.all([
      import('../mcp/server.ts'),
      import('../mcp/surface.ts'),
    ])
    const surface = given ?? createSurface(handlers, { sizes: config })
    return { surface, mcp: createMcp({ surface, version: manifest.version, log }) }
  }
  return { hosts: createHosts(config), load: () => (loaded ??= load()) }
}

interface Exchange extends Outlet {
  readonly pipeline: Pipeline
  actor?: string
}

type Headers = readonly (readonly [name: string, value: string])[]

const METHODS = 'POST, OPTIONS'

/** The way of every request to /mcp/v1. Settles always, as `dispatch` does. */
export async function serveMcp(mounted: Mounted, pipeline: Pipeline, { request, response }: Arrival): Promise<void> {
  const turn = pipeline.requestTurns.next()
  if (turn) await turn
  // The connection has ended meanwhile.
  if (response.completed) return
  const requestId = requestIdOf(request.headers['x-request-id'])
  const { open, unsent } = pipeline
  const exchange: Exchange = { pipeline, request, response, requestId, open, unsent, headers: [], isLast: true }
  const since = performance.now()
  try {
    assertFraming(request)
    exchange.isLast = false
    assertAtHome(exchange, mounted.hosts)
    if (request.method === 'OPTIONS') preflight(exchange)
    else if (request.method === 'POST') await serve(mounted, exchange)
    else throw new Fault('METHOD_NOT_ALLOWED', { allow: METHODS.split(', ') })
  } catch (error) {
    // As in `dispatch`: what follows in the same packet must not be taken for a request.
    if (exchange.isLast) await setImmediate()
    refuse(exchange, error)
  }
  pipeline.access?.(exchange, { route: MCP_PATH, actor: exchange.actor, since })
}

/** Before anybody is asked who he is: a page of a stranger gets nothing at all. */
function assertAtHome(exchange: Exchange, hosts: Hosts): void {
  const { host, origin } = exchange.request.headers
  if (!hosts.isOurs(host)) throw foreign('Host', host, 'WINDLASS_MCP_HOSTS')
  if (!hosts.mayCall(origin)) throw foreign('Origin', origin, 'WINDLASS_MCP_ORIGINS')
  if (origin !== undefined) exchange.headers = sharing(origin)
}

function foreign(header: string, value: string | undefined, setting: string): Fault {
  const message = `The header ${header} names ${value ?? 'nothing'}, which is not one of ours; the setting ${setting} of the coordinator takes more.`
  return new Fault('FORBIDDEN', { header }, message)
}

/** What a browser wants to be told before it shows the answer to a page. */
function sharing(origin: string): Headers {
  return [
    ['access-control-allow-origin', origin],
    ['access-control-expose-headers', 'x-request-id, www-authenticate, retry-after, ratelimit, ratelimit-policy'],
    ['vary', 'origin'],
  ]
}

function preflight(exchange: Exchange): void {
  begin(exchange, 204, 'no-store')
    .header('allow', METHODS)
    .header('access-control-allow-methods', 'POST')
    .header(
      'access-control-allow-headers',
      'authorization, content-type, accept, mcp-protocol-version, mcp-method, mcp-name, idempotency-key, x-windlass-org, x-service-org, x-request-id',
    )
    .header('access-control-max-age', '600')
  end(exchange)
}

async function serve({ load }: Mounted, exchange: Exchange): Promise<void> {
  const { pipeline, request, response, requestId } = exchange
  const { deps } = pipeline
  const token = tokenOf(request.headers['authorization'])
  const isKnown = () => pipeline.verify.knows('caller', token)
  const shown = { as: 'mcp', address: pipeline.proxies.addressOf(request), requestId, isKnown }
  const caller = await pipeline.gate.pass(shown, () => pipeline.verify.caller(token))
  exchange.actor = caller.id
  exchange.orgId = caller.orgId
  await take(exchange, caller)
  assertOrg(request.headers, caller)
  const { mcpValues: values, mcpSmallBodies: small } = pipeline
  const room = roomFor({ ...deps, values, small }, caller.orgId, response)
  try {
    await answer(await load(), exchange, { caller, room })
  } finally {
    room.release()
  }
}

type Loaded = Awaited<ReturnType<Mounted['load']>>

async function answer({ mcp, surface }: Loaded, exchange: Exchange, { caller, room }: { caller: Caller; room: Room }) {
  const { pipeline, request, response, requestId, open } = exchange
  const { deps, proxies } = pipeline
  const { baseUrl } = deps.config
  const body = await readMessage(exchange, surface.mostBytes({ caller }), room)
  if (!body) return
  const messages = Array.isArray(body.value) ? body.value.length : 1
  const most = mostMessages(deps.config)
  if (messages > most) return sendError(exchange, tooMany(most))
  // A batch is as many requests as it has messages; the first is paid for.
  for (let n = 1; n < messages; n++) await take(exchange, caller)
  const turn = pipeline.mcpTurns.next(caller.orgId)
  if (turn) await turn
  // The client has left meanwhile.
  if (response.completed) return
  const call = new RequestCall({
    input: undefined,
    actor: caller,
    requestId,
    request,
    response,
    baseUrl,
    open,
    proxies,
    stay: () => stay(exchange),
  })
  try {
    const wait = () => pipeline.waiting.enter(caller)
    const keyInHeader = () => keyOfCall(call.header('idempotency-key'), body.value)
    const asking = askingOf(call, { deps, caller, bytes: body.bytes, wait, keyInHeader })
    const { status, text } = await mcp.answer({ headers: request.headers, message: body.value, asking })
    if (!response.completed) send(exchange, status, text)
  } finally {
    call.settled()
  }
}

const KEY_OF_BATCH =
  'A batch of several calls takes no header `Idempotency-Key`: give each call an `idempotencyKey` of its own.'

function keyOfCall(inHeader: string | undefined, body: unknown): string | undefined {
  const isCall = (message: unknown) => (message as { method?: unknown } | null)?.method === 'tools/call'
  if (inHeader === undefined || !Array.isArray(body) || body.filter(isCall).length === 1) return inHeader
  throw new Fault('VALIDATION_FAILED', { path: 'idempotencyKey' }, KEY_OF_BATCH)
}

type Own = Pick<Asking, 'deps' | 'caller' | 'bytes' | 'wait' | 'keyInHeader'>

function askingOf(call: RequestCall, own: Own): Asking {
  return {
    ...own,
    requestId: call.requestId,
    address: call.address,
    peer: call.peer,
    base: call.base,
    stay: () => call.stay(),
    assertConnected: () => call.assertConnected(),
    get gone() {
      return call.gone
    },
  }
}

/** Looked up at most once a second. It has served, so what strangers from its address try does not matter. */
async function stay({ pipeline, request }: Exchange): Promise<void> {
  await pipeline.verify.caller(tokenOf(request.headers['authorization']))
}

/** From the buckets of REST. */
async function take(exchange: Exchange, caller: Caller): Promise<void> {
  const { refusal, headers } = await exchange.pipeline.deps.limits.take(caller)
  const { origin } = exchange.request.headers
  exchange.headers = origin === undefined ? headers : [...sharing(origin), ...headers]
  if (refusal) throw refusal
}

type Message = { value: unknown; bytes: number }

/** The message, or nothing when it is none: that has been answered in the protocol's own form. */
async function readMessage(exchange: Exchange, limit: number, room: Room): Promise<Message | undefined> {
  try {
    return await inTime(exchange.response, room, (space) => readJson(exchange.request, limit, space))
  } catch (error) {
    if (!(error instanceof Fault) || error.code !== 'VALIDATION_FAILED') throw error
    const { path: _, ...where } = error.detail ?? {}
    const data = { code: error.code, ...where }
    sendError(exchange, { code: -32_700, message: `Parse error: ${error.message}`, data })
    return undefined
  }
}

/** All of them are answered together. */
const MOST_MESSAGES = 100

/** One with more messages than its sender has requests in a minute would be refused at any time. */
function mostMessages({ limitIdentityPerMin, limitOrgPerMin }: Config): number {
  return Math.min(MOST_MESSAGES, limitIdentityPerMin || Infinity, limitOrgPerMin || Infinity)
}

const tooMany = (most: number) => ({
  code: -32_600,
  message: `Invalid request: a batch has ${most} messages at most.`,
  data: { code: 'VALIDATION_FAILED' },
})

/** In the form of JSON-RPC, of which the request was to be one. */
function sendError(exchange: Exchange, error: object): void {
  send(exchange, 400, JSON.stringify({ jsonrpc: '2.0', id: null, error }))
}

function send(exchange: Exchange, status: number, text: string): void {
  const response = begin(exchange, status, 'no-store')
  if (text === '') return end(exchange)
  response.header('content-type', 'application/json')
  end(exchange, text)
}

function refuse(exchange: Exchange, error: unknown): void {
  const { pipeline, request, response, requestId } = exchange
  const { log, strict, deps } = pipeline
  try {
    const fault = faultFor(error, { plan: undefined, requestId, log, strict })
    if (fault === undefined || response.completed) return
    if (response.initiated) return void response.close()
    if (fault.code === 'UNAUTHENTICATED')
      exchange.challenge = challenge(exchange, deps.config.baseUrl ?? pipeline.proxies.baseOf(request))
    sendFault(exchange, fault, fault.code === 'METHOD_NOT_ALLOWED' ? METHODS : undefined)
    if (!request.received) pipeline.unread.add(response)
  } catch (unsendable) {
    log.error('http.unsendable', { requestId, error: unsendable })
    response.close()
  }
}

/** By this a client finds out how to get a credential, where there is a way: RFC 9728. */
function challenge({ request }: Exchange, base: string): string {
  const isRefused = request.headers['authorization'] !== undefined
  const reason = isRefused ? ', error="invalid_token"' : ''
  return `Bearer resource_metadata="${base}${MCP_METADATA_PATH}"${reason}`
}
