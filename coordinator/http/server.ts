import { setImmediate } from 'node:timers/promises'
import type { Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'
import { MESSAGE_BYTES } from '@windlass/shared/wire/parts.ts'
import { Server } from 'hyper-express'
import { MCP_PATH } from '../api/base-url.ts'
import type { Handlers } from '../api/index.ts'
import { createStrangers } from '../limits/strangers.ts'
import { createProgramRequests } from '../limits/program-requests.ts'
import { createSeats } from '../limits/seats.ts'
import { createSlowOrgs } from '../limits/slow-orgs.ts'
import type { UnreadBytes } from '../limits/unread-bytes.ts'
import { createWaiting } from '../limits/waiting.ts'
import type { Surface } from '../mcp/surface.ts'
import type { Verifiers } from '../call/access.ts'
import { type Arrival, dispatch, type Pipeline, type PipelineNeeds } from './dispatch.ts'
import { createAccessLog } from './access-log.ts'
import { BYTES_DEADLINE_MS } from './answer.ts'
import { freePort } from './free-port.ts'
import { createGate } from '../call/gate.ts'
import { smallBodies } from './held-body.ts'
import { mountedMcp, serveMcp } from './mount.ts'
import { OpenWork } from './open-work.ts'
import { createProxies } from './proxies.ts'
import { type PathPlan, planPaths } from '../call/plan.ts'
import { createRequestTurns } from './request-turns.ts'
import { createOneByOne } from './one-by-one.ts'
import { openSocket, type Upgrade } from './socket.ts'
import { Unread } from './unread.ts'
import { createUnsent, unreadAnswers } from './unsent.ts'

const MIB = 1024 * 1024

/** How long what is in flight may take to end when the server stops. */
const CLOSE_MS = 5000

/** Whoever neither reads nor writes for so long is cut; the reader of a stream comes back with its last cursor. */
const STALL_MS = 30_000

/** So long after its credential was revoked or has expired a reader may still get what is written to its stream. */
const RECHECK_MS = 5000

/**
 * Seconds without a sign of life of a socket. Pings go out by themselves before that; agents send theirs every 10 s.
 */
const IDLE_S = 40

/**
 * Memory of large bodies that are values at once: of an org, of all, and of all orgs whose requests take long. A text
 * of 1 MiB takes 4 to 25 MiB: one of 100 KB that waits for the judge keeps nobody else waiting. Slow orgs leave what
 * one org may ask for at once.
 */
export const VALUES = { org: 48 * MIB, all: 160 * MIB, slow: (160 - 48) * MIB }

const SOCKET_OPTIONS = {
  message_type: 'String',
  send_pings_automatically: true,
  max_payload_length: MESSAGE_BYTES,
  // Over this a frame is dropped: a hole that the reader cannot see. So the socket is closed instead.
  max_backpressure: 64 * MIB,
  close_on_backpressure_limit: true,
} as const

export interface ServerOptions {
  handlers: Handlers
  deps: PipelineNeeds
  log: Log
  host: string
  /** 0 takes a free one. */
  port: number
  verify: Verifiers
  /** How long the other end may stall, as a reader or with a body that we refused; 30 s by default. */
  stallMs?: number
  /** How often the credential of a stream's reader is looked at again; 5 s by default. */
  recheckMs?: number
  /** After how long a silence a socket is given up, 8 s at least; 40 s by default. */
  idleS?: number
  /** What MCP shows: the operations, unless a test has something else to show. */
  surface?: Surface
  /** Bounds what readers of orgs leave unread of whole answers, and how long one of these may take; of a test. */
  unread?: UnreadBytes
  answerDeadlineMs?: number
}

export interface RunningServer {
  port: number
  /** Stops listening, ends streams and sockets, waits up to 5 s for the rest. */
  close(): Promise<void>
}

/** Serves every row of the operation table on one port. */
export async function startServer(options: ServerOptions): Promise<RunningServer> {
  const { deps, log, verify, host, port, stallMs = STALL_MS, recheckMs = RECHECK_MS } = options
  const open = new OpenWork()
  const unread = new Unread(stallMs)
  const pipeline: Pipeline = { ...admissionOf(options), deps, log, verify, open, unread, stallMs, recheckMs }
  const server = new Server({
    auto_close: false,
    // Each row has a limit of its own, and an envelope to say so; the server's own answer to a large body is empty.
    max_body_length: Number.MAX_SAFE_INTEGER,
  })
  for (const path of planPaths(options.handlers, deps.config))
    addPath(server, path, { pipeline, idleS: options.idleS ?? IDLE_S })
  mountMcp(server, options, pipeline)
  server.set_not_found_handler((request, response) => void dispatch(pipeline, undefined, { request, response }))
  server.set_error_handler((_request, response, error) => {
    log.error('http.broken', { error })
    response.close()
  })
  await listen(server, host, port)
  return { port: server.port, close: () => close(server, open, unread) }
}

/** Builds what decides who is let in and what is logged about it. */
function admissionOf({
  deps: { config },
  log,
  unread,
  stallMs = STALL_MS,
  answerDeadlineMs = BYTES_DEADLINE_MS,
}: ServerOptions): Pick<
  Pipeline,
  | 'gate'
  | 'proxies'
  | 'access'
  | 'unsent'
  | 'strict'
  | 'waiting'
  | 'values'
  | 'mcpValues'
  | 'smallBodies'
  | 'mcpSmallBodies'
  | 'requestTurns'
  | 'runnerTurns'
  | 'mcpTurns'
  | 'programs'
> {
  const { strict, limitRefusedPerMin, limitWaiting, limitOrgWaiting, trustedProxies, accessLog } = config
  const proxies = createProxies(trustedProxies)
  const gate = createGate({ log, strangers: createStrangers(limitRefusedPerMin) })
  const waiting = createWaiting({ caller: limitWaiting, org: limitOrgWaiting })
  const access = accessLog ? createAccessLog(log, proxies) : undefined
  const [values, mcpValues] = [createSeats(VALUES, createSlowOrgs()), createSeats(VALUES, createSlowOrgs())]
  return {
    strict,
    proxies,
    gate,
    access,
    unsent: createUnsent({
      ...unreadAnswers(log),
      ...(unread && { unread }),
      proxies,
      stallMs,
      deadlineMs: answerDeadlineMs,
    }),
    waiting,
    values,
    mcpValues,
    smallBodies: smallBodies(),
    mcpSmallBodies: smallBodies(),
    requestTurns: createRequestTurns(),
    runnerTurns: createOneByOne(),
    mcpTurns: createOneByOne(),
    programs: createProgramRequests(),
  }
}

interface Serving {
  pipeline: Pipeline
  idleS: number
}

function addPath(server: Server, path: PathPlan, serving: Serving): void {
  const { pipeline } = serving
  const { pattern } = path
  server.any(pattern, (request: unknown, response: unknown) => {
    void dispatch(pipeline, path, { request, response } as Arrival)
  })
  if (path.methods['GET']?.row.wire === 'socket') addSocket(server, path, serving)
}

function addSocket(server: Server, path: PathPlan, { pipeline, idleS }: Serving): void {
  const { pattern } = path
  server.upgrade(pattern, (request: unknown, response: unknown) => {
    void dispatch(pipeline, path, { request, response, isUpgrade: true } as Arrival)
  })
  server.ws(pattern, { ...SOCKET_OPTIONS, idle_timeout: idleS }, (socket) => {
    openSocket(socket, socket.context as unknown as Upgrade, pipeline.open, pipeline.log)
  })
}

function mountMcp(server: Server, { handlers, deps, surface }: ServerOptions, pipeline: Pipeline): void {
  const mounted = mountedMcp({ handlers, config: deps.config, log: pipeline.log, surface })
  server.any(MCP_PATH, (request: unknown, response: unknown) => {
    void serveMcp(mounted, pipeline, { request, response } as Arrival)
  })
}

async function listen(server: Server, host: string, port: number): Promise<void> {
  await server.listen(await freePort(host, port), host)
}

async function close(server: Server, open: OpenWork, unread: Unread): Promise<void> {
  const inFlight = server.shutdown()
  open.endAll()
  const deadline = new AbortController()
  await Promise.race([inFlight, pause(CLOSE_MS, deadline.signal)])
  deadline.abort()
  unread.stop()
  // The last answer counts as sent while its bytes still lie in the packet that is being put together.
  await setImmediate()
  server.force_close()
}
