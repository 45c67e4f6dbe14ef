import {
  type AuthInfo,
  classifyInboundRequest,
  createMcpHandler,
  isInitializeRequest,
  type JSONRPCRequest,
  type McpRequestContext,
  ProtocolError,
  ProtocolErrorCode,
  type RequestId,
  ResourceNotFoundError,
  Server,
  WebStandardStreamableHTTPServerTransport,
} from '@modelcontextprotocol/server'
import { Fault } from '@windlass/shared/errors.ts'
import type { Log } from '@windlass/shared/log.ts'
import { faultFor } from '../call/failures.ts'
import { inTime } from '../in-time.ts'
import type { Asking } from './asking.ts'
import { type Act, createBatch } from './batch.ts'
import { UnknownTool } from './call-tool.ts'
import { coded, type JsonRpcError, withCode } from './coded.ts'
import { type Deadlines, DEADLINES } from './deadlines.ts'
import { hasTooManyParts } from './many-parts.ts'
import { haveSameIds } from './same-ids.ts'
import type { Surface } from './surface.ts'
import { STAND_IN, withTools } from './tool-list.ts'

/** One POST, behind every check that is ours. */
export interface McpRequest {
  /** By lower-case name. */
  headers: Readonly<Record<string, string>>
  /** What the body says. */
  message: unknown
  asking: Asking
}

export interface McpAnswer {
  status: number
  /** JSON text; nothing for what was only taken note of. */
  text: string
}

export interface Mcp {
  /** Throws UNAVAILABLE for what has no answer in time. */
  answer(request: McpRequest): Promise<McpAnswer>
}

export interface McpOptions {
  surface: Surface
  version: string
  log: Log
  deadlines?: Deadlines
}

/** The protocol reads nothing else; a cookie or a credential has no business in there. */
const HEADERS = ['content-type', 'mcp-protocol-version', 'mcp-method', 'mcp-name']
/** Nobody goes there: the protocol's part of the library wants a whole address. */
const ADDRESS = 'http://localhost/mcp/v1'
/** The list of tools changes with the credential and with a new version of the service only. */
const TOOLS_TTL_MS = 300_000

const INSTRUCTIONS = [
  'Windlass keeps workflows (programs that people deploy) and executes them as runs.',
  'Usual course: list_workflows, get_workflow for the schema of the input, trigger_now, then get_run_output with `waitMs` and the last `cursor` as `since`, until `done`.',
  'A run that stands still is explained by explain_run; one that asks a person is found by list_pending_inputs and continues with respond_to_input.',
  'Times are milliseconds since the Unix epoch. Lists come in pages: pass `nextCursor` as `cursor`. What was cut to stay short says so in `cut`.',
].join('\n')

/** Serves both eras of the protocol without sessions: each request is answered by itself, by whichever coordinator gets it. */
export function createMcp({ deadlines = DEADLINES, ...options }: McpOptions): Mcp {
  const { requestMs } = deadlines
  const answer = createAnswer({ ...options, deadlines })
  return {
    async answer(request) {
      const over = new AbortController()
      try {
        return await inTime(requestMs, answer(request, over.signal), unanswered(requestMs))
      } finally {
        over.abort()
      }
    },
  }
}

/** Answers, unless the library leaves something without an answer. `over` ends what it has under way. */
function createAnswer({ surface, version, log, deadlines }: Required<McpOptions>) {
  const info = { name: 'windlass', title: 'Windlass', version }
  const onerror = (error: Error) => log.debug('mcp.refused', { reason: error.message })
  // No handler of ours says anything before its result, so each answer is one JSON text.
  const modern = createMcpHandler((context) => serverFor(carriedBy(context)), { legacy: 'reject', onerror })
  return answer

  async function answer({ headers, message, asking }: McpRequest, over: AbortSignal): Promise<McpAnswer> {
    if (!takesJson(headers['accept']))
      return refusal(406, null, { code: ProtocolErrorCode.InvalidRequest, message: NOT_TAKEN })
    if (hasTooManyParts(messagesIn(message))) return refusal(400, null, TOO_MANY_PARTS)
    const outcome = classifyInboundRequest({
      httpMethod: 'POST',
      protocolVersionHeader: headers['mcp-protocol-version'],
      mcpMethodHeader: headers['mcp-method'],
      mcpNameHeader: headers['mcp-name'],
      body: message,
    })
    const request = new Request(ADDRESS, { method: 'POST', headers: headersOf(headers), signal: over })
    const carried: Carried = { message, asking }
    if (outcome.kind === 'legacy') {
      if (haveSameIds(messagesIn(message))) return refusal(400, null, SAME_IDS)
      return unfitting(message) ?? answerOf(await old(request, carried), carried)
    }
    // A stream that stays open for what never changes: there is nothing to subscribe to here.
    if (outcome.kind === 'modern' && outcome.message.method === 'subscriptions/listen') return noMethod(message)
    return answerOf(await modern.fetch(request, { parsedBody: message, authInfo: carrying(carried) }), carried)
  }

  /** The revisions of 2025, without a session and answered as JSON. */
  async function old(request: Request, carried: Carried): Promise<Response> {
    const transport = new WebStandardStreamableHTTPServerTransport({ enableJsonResponse: true })
    const server = serverFor(carried)
    await server.connect(transport)
    request.signal.addEventListener('abort', () => void server.close(), { once: true })
    return transport.handleRequest(request, { parsedBody: carried.message })
  }

  function serverFor(carried: Carried): Server {
    const { asking, message } = carried
    const batch = createBatch(asking, deadlines.messagesMs)
    const inTurn = <T>(act: Act<T>, uri?: string) => refusing(asking, () => batch.inTurn(act), uri)
    const server = new Server(info, {
      capabilities: { tools: {}, resources: {}, completions: {} },
      instructions: INSTRUCTIONS,
      cacheHints: { 'tools/list': { ttlMs: TOOLS_TTL_MS, cacheScope: 'private' } },
    })
    // The library gives a request that was cancelled no answer, and waits for one. Without sessions a message reaches
    // the requests of its own batch only, and there is nothing to cancel.
    server.setNotificationHandler('notifications/cancelled', () => {})
    server.setRequestHandler('tools/list', () =>
      inTurn(async () => {
        carried.tools = (await batch.withRoom(async () => ({ text: surface.tools(asking) }))).text
        return { tools: STAND_IN }
      }),
    )
    server.setRequestHandler('tools/call', ({ params }, { mcpReq }) => {
      const given = asSent(message, mcpReq.id) ?? params.arguments ?? {}
      const call = (leftMs: number) => surface.call(asking, params.name, given, leftMs)
      // What it waits for may be done by a call behind it.
      return given['waitMs'] ? refusing(asking, () => batch.beside(call)) : inTurn(call)
    })
    server.setRequestHandler('resources/list', () =>
      inTurn(async () => ({ resources: await surface.resources(asking) })),
    )
    server.setRequestHandler('resources/templates/list', () => ({ resourceTemplates: [...surface.templates] }))
    server.setRequestHandler('resources/read', ({ params }) =>
      inTurn(async () => ({ contents: [await batch.withRoom(() => surface.read(asking, params.uri))] }), params.uri),
    )
    server.setRequestHandler('completion/complete', ({ params: { ref, argument, context } }) =>
      inTurn(async () => {
        const uri = ref.type === 'ref/resource' ? ref.uri : ''
        const asked = { uri, argument: argument.name, value: argument.value, known: context?.arguments ?? {} }
        const values = await surface.complete(asking, asked)
        return { completion: { values, total: values.length, hasMore: false } }
      }),
    )
    return server
  }
}

/** What was thrown, as an error of the protocol. A tool's own refusals are results and never come here. */
async function refusing<T>(asking: Asking, act: () => Promise<T>, uri?: string): Promise<T> {
  try {
    return await act()
  } catch (error) {
    if (error instanceof UnknownTool)
      throw new ProtocolError(ProtocolErrorCode.InvalidParams, error.message, { code: 'NOT_FOUND' })
    const { requestId, deps } = asking
    const fault = faultFor(error, { plan: undefined, requestId, log: deps.log, strict: deps.config.strict })
    const { code, message, detail } = fault ?? new Fault('UNAVAILABLE')
    // An id in an address that cannot be one names nothing either.
    const isAbsent = code === 'NOT_FOUND' || code === 'VALIDATION_FAILED'
    if (isAbsent && uri !== undefined) throw new ResourceNotFoundError(uri, message)
    const isOurs = code === 'INTERNAL' || code === 'UNAVAILABLE'
    const kind = isOurs ? ProtocolErrorCode.InternalError : ProtocolErrorCode.InvalidRequest
    throw new ProtocolError(kind, message, { code, ...(detail && { detail }) })
  }
}

function headersOf(given: McpRequest['headers']): Headers {
  const headers = new Headers()
  for (const name of HEADERS) {
    const value = given[name]
    // `Headers` refuses what is beyond, and nothing of the protocol has it.
    if (value !== undefined) headers.set(name, value.replace(/[^\t\x20-\x7e]/g, '?'))
  }
  // The protocol wants both named. We answer JSON only, and whoever takes that has been let in.
  headers.set('accept', 'application/json, text/event-stream')
  return headers
}

const TOO_MANY_PARTS = {
  code: ProtocolErrorCode.InvalidRequest,
  message:
    'Invalid request: its messages have more than 4,000 names and items, or more than 256 KiB of names and texts, ' +
    'but for those in the values of `arguments`.',
}
const SAME_IDS = {
  code: ProtocolErrorCode.InvalidRequest,
  message: 'Invalid request: two requests of a batch have the same id.',
}
const unanswered = (ms: number) => `The request has no answer after ${ms / 1000} s. What it was to do may go on.`
const takesJson = (accept = '*/*') => /(^|[,\s])(\*\/\*|application\/(json|\*))/.test(accept)
const NOT_TAKEN = 'Every answer is `application/json`: `Accept` has to name that, or a pattern that fits it.'

/** What belongs to one request. */
interface Carried {
  asking: Asking
  message: unknown
  /** As JSON text, once the list was asked for. */
  tools?: string
}

/** The library hands on who has been let in; what we know of him rides along. */
function carrying(carried: Carried): AuthInfo {
  return { token: '', clientId: carried.asking.caller.id, scopes: [], extra: { carried } }
}

function carriedBy({ authInfo }: McpRequestContext): Carried {
  return authInfo?.extra?.['carried'] as Carried
}

/** The arguments as they came: the library drops a field named `__proto__`, which is to be refused by its name like any other. */
function asSent(message: unknown, id: RequestId): Record<string, unknown> | undefined {
  const [one, ...others] = messagesIn(message).filter((each) => each.id === id)
  return others.length > 0 ? undefined : (one?.params?.['arguments'] as Record<string, unknown> | undefined)
}

async function answerOf(response: Response, { tools }: Carried): Promise<McpAnswer> {
  const text = coded(await response.text())
  return { status: response.status, text: tools === undefined ? text : withTools(text, tools) }
}

function messagesIn(message: unknown): JSONRPCRequest[] {
  return (Array.isArray(message) ? message : [message]) as JSONRPCRequest[]
}

function noMethod(message: unknown): McpAnswer {
  const { id } = message as { id?: RequestId }
  if (id === undefined) return { status: 202, text: '' }
  return refusal(404, id, { code: ProtocolErrorCode.MethodNotFound, message: 'Method not found' })
}

const WANTED =
  'initialize takes `params` with `protocolVersion`, `capabilities` and `clientInfo` (`name` and `version`)'

/** The library takes an `initialize` that it cannot read for a fault of its own. */
function unfitting(message: unknown): McpAnswer | undefined {
  const isOne = (each: JSONRPCRequest | null) =>
    each?.method === 'initialize' && each.jsonrpc === '2.0' && ['string', 'number'].includes(typeof each.id)
  const found = messagesIn(message).find((each) => isOne(each) && !isInitializeRequest(each))
  return found && refusal(200, found.id, { code: ProtocolErrorCode.InvalidParams, message: WANTED })
}

function refusal(status: number, id: RequestId | null, error: JsonRpcError): McpAnswer {
  return { status, text: JSON.stringify({ jsonrpc: '2.0', id, error: withCode(error) }) }
}
