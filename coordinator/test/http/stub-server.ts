import { newId } from '@windlass/shared/ids.ts'
import { createLog, type Log } from '@windlass/shared/log.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { AnyOp } from '@windlass/shared/ops/op.ts'
import { Fault } from '@windlass/shared/errors.ts'
import type { Role, Scope } from '@windlass/shared/scopes.ts'
import { BytesAnswer, type Call, SocketAnswer, SseAnswer } from '../../api/call.ts'
import type { Handlers } from '../../api/index.ts'
import type { Caller, ProgramIdentity, RunnerIdentity } from '../../actor.ts'
import type { PipelineNeeds } from '../../http/dispatch.ts'
import { type BytesInFlight, createBytesInFlight } from '../../limits/bytes-in-flight.ts'
import { openOrgTurns } from '../../limits/org-turns.ts'
import type { Limits } from '../../limits/limits.ts'
import type { UnreadBytes } from '../../limits/unread-bytes.ts'
import type { Surface } from '../../mcp/surface.ts'
import { DEFAULT_SIZES } from '../../sizes.ts'
import type { Verifiers } from '../../call/access.ts'
import { type RunningServer, startServer } from '../../http/server.ts'

// The table with handlers made here: what is tested is the way to them. Credentials say whom they stand for.

export const RUN = newId('run')
export const RUNNER = newId('rnr')
export const POOL = newId('pool')
const INPUT = newId('inp')
const ORG_ID = newId('org')
const KEY = newId('key')

type StubHandler = (call: Call<Record<string, unknown>>) => unknown

export interface StubServer extends RunningServer {
  url: string
  /** What was logged, as facts. */
  logged: Record<string, unknown>[]
}

export interface StubOptions {
  /** By id of the row, in place of the stub. */
  handlers?: Record<string, StubHandler>
  stallMs?: number
  recheckMs?: number
  idleS?: number
  /** In place of the stub's own. */
  caller?: Verifiers['caller']
  runner?: Verifiers['runner']
  strict?: boolean
  port?: number
  trustedProxies?: string[]
  limitRefusedPerMin?: number
  accessLog?: boolean
  limitWaiting?: number
  limitOrgWaiting?: number
  knows?: Verifiers['knows']
  bodies?: BytesInFlight
  /** What MCP shows. */
  surface?: Surface
  unread?: UnreadBytes
  answerDeadlineMs?: number
}

export async function startStub({
  handlers = {},
  stallMs,
  recheckMs,
  idleS,
  caller = aCaller,
  runner = verifiers.runner,
  strict = true,
  port = 0,
  trustedProxies = [],
  limitRefusedPerMin = 0,
  accessLog = false,
  limitWaiting = 0,
  limitOrgWaiting = 0,
  knows = () => false,
  bodies = createBytesInFlight({ org: Infinity, all: Infinity }),
  surface,
  unread,
  answerDeadlineMs,
}: StubOptions = {}): Promise<StubServer> {
  const logged: Record<string, unknown>[] = []
  const log: Log = createLog({}, 'debug', {
    write: (line) => logged.push(JSON.parse(line) as Record<string, unknown>),
  })
  const limits: Limits = { take: () => ({ refusal: null, headers: [] }) }
  const deps = {
    config: {
      ...DEFAULT_SIZES,
      strict,
      host: '127.0.0.1',
      mcpHosts: [],
      mcpOrigins: [],
      trustedProxies,
      limitRefusedPerMin,
      limitWaiting,
      limitOrgWaiting,
      accessLog,
    },
    log,
    limits,
    bodies,
    deliveryBodies: bodies,
    turns: openOrgTurns(),
  } as unknown as PipelineNeeds
  const server = await startServer({
    handlers: stubs(handlers),
    deps,
    log,
    host: '127.0.0.1',
    port,
    verify: { ...verifiers, knows, caller, runner },
    stallMs,
    recheckMs,
    idleS,
    ...(surface && { surface }),
    ...(unread && { unread }),
    ...(answerDeadlineMs !== undefined && { answerDeadlineMs }),
  })
  return { ...server, url: `http://127.0.0.1:${server.port}`, logged }
}

function stubs(own: Record<string, StubHandler>): Handlers {
  const ofGroup = (rows: object) =>
    Object.fromEntries(Object.entries(rows).map(([name, row]: [string, AnyOp]) => [name, own[row.id] ?? stubOf(row)]))
  return Object.fromEntries(Object.entries(ops).map(([group, rows]) => [group, ofGroup(rows)])) as unknown as Handlers
}

function stubOf(row: AnyOp): StubHandler {
  if (row.wire === 'bytes') return () => new BytesAnswer(Buffer.from('bytes'), 'application/gzip')
  if (row.wire === 'sse') return () => new SseAnswer(async () => {})
  if (row.wire === 'socket') return () => new SocketAnswer(() => {})
  return () => {
    throw new Fault('UNAVAILABLE', undefined, 'the stub was reached')
  }
}

/** Callers are `[session:]<role>[=scope,scope][@org]`, as in `member=run:read@acme`; the others `runner` and `program`. */
export const verifiers: Omit<Verifiers, 'knows'> = {
  caller: aCaller,
  runner: (token) => Promise.resolve().then(() => (token === 'runner' ? runner : refuse())),
  program: (token) => Promise.resolve().then(() => (token === 'program' ? program : refuse())),
}

const runner: RunnerIdentity = { kind: 'runner', id: RUNNER, name: 'one', orgId: ORG_ID, poolId: POOL, signedWith: 'x' }
const program: ProgramIdentity = { kind: 'program', runId: RUN, orgId: ORG_ID, runnerId: RUNNER, epoch: 1 }

export async function aCaller(token: string): Promise<Caller> {
  const match = /^(session:)?(viewer|member|admin|owner)(?:=([a-z_:,]+))?(?:@([a-z]+))?$/.exec(token)
  if (!match) return refuse()
  const [, session, role, listed, org = 'acme'] = match
  const scopes = (listed?.split(',') ?? []) as Scope[]
  return { kind: session ? 'session' : 'key', id: KEY, name: 'stub', orgId: ORG_ID, org, role: role as Role, scopes }
}

function refuse(): never {
  throw new Fault('UNAUTHENTICATED')
}

/** A path of the row with plausible values in it. */
export function pathOf(row: AnyOp): string {
  const values: Record<string, string> = {
    org: 'acme',
    workflow: 'hello',
    version: '1',
    path: 'index.ts',
    run: RUN,
    runner: RUNNER,
    pool: POOL,
    digest: 'ab'.repeat(32),
    input: INPUT,
  }
  return row.path.replace(/\{(\w+)\}/g, (_, name: string) => values[name] ?? `no-value-for-${name}`)
}

export interface Envelope {
  error: {
    code: string
    message: string
    detail?: { path?: string; issues?: { path: string; message: string }[] } & Record<string, unknown>
  }
}

export async function envelope(response: Response): Promise<Envelope['error']> {
  return ((await response.json()) as Envelope).error
}
