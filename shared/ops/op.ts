import type { z } from 'zod'
import type { FaultCode } from '../errors.ts'
import type { Role, Scope } from '../scopes.ts'
import type { Cli } from './cli.ts'

export type Method = 'GET' | 'POST' | 'PUT' | 'PATCH' | 'DELETE' | 'OPTIONS'

/** What may be in a body and has a limit of its own, which is a setting of the coordinator but for agents. */
export type Carries = 'files' | 'input' | 'batch' | 'answer' | 'agent' | 'delivery'

/** What proves who asks: an API key or a session of an org, the signed token of an installed agent, a run's token. */
export type Credential = 'key' | 'session' | 'runner' | 'run'

export interface Tool {
  readonly tool: string
  readonly when: string
  /** Something is lost by it that does not come back by itself. What is read or deleted says so by its method. */
  readonly destructive?: true
  /** Whether a second call does no more than the first, where the method does not say it: GET, PUT and DELETE do. */
  readonly idempotent?: boolean
  /** It makes a program act, and who knows on what. */
  readonly openWorld?: true
}

/** Of a row that is going to be removed. Days are written `2027-05-01` and begin at midnight, UTC. */
export interface Deprecation {
  readonly since: string
  /** When it may be gone: six months later at the earliest. */
  readonly sunset: string
  /** Path of what to use instead. */
  readonly use: string
}

/** One row = one operation = one route. Rows are data: what wants an `if` is two rows, or a handler's business. */
export interface Op<I extends z.ZodObject = z.ZodObject, O extends z.ZodType = z.ZodType> {
  readonly id: string
  readonly method: Method
  /** Names in braces are fields of `input`; the rest of it rides in the query (GET, DELETE) or in the body. */
  readonly path: string
  /** Other paths with the same names in braces that are served alike: those by which clients look for it. */
  readonly aliases?: readonly string[]
  /** Any of these serves. Empty: anybody may ask. `session` without `key`: a key gets 403 at any scope. */
  readonly credentials: readonly Credential[]
  /** Any of these serves. Empty: no scope names it, so a key with a scope list is refused. */
  readonly scope: readonly Scope[]
  /** The least role; null where the credential has none. */
  readonly role: Role | null
  /**
   * It ends or holds a credential, a machine, runs or what starts them, soon and for an org of any size, and does
   * nothing else. It has a turn that the other calls of its org cannot take. Of a row that does more: asked for just
   * these fields.
   */
  readonly stops?: true | { readonly enabled: false }
  /** The MCP tool, and when a model should reach for it. */
  readonly mcp?: Tool
  /** The command that serves it, where that is not its group and name: `deploy`. */
  readonly command?: string
  /** How that is typed, and what it shows. Without it a command that is not made by hand prints its answer as JSON. */
  readonly cli?: Cli
  readonly summary: string
  readonly input: I
  readonly output: O
  /** Beside those that every row with its credentials may answer. */
  readonly faults: readonly FaultCode[]
  /** 202: what was asked for has begun, and the answer names the job that goes on with it. */
  readonly success: 200 | 201 | 202 | 204
  /** Where the answer is not JSON: an SSE stream, bytes, or an upgrade to WebSocket. */
  readonly wire?: 'sse' | 'bytes' | 'socket'
  /** Of bytes: a part may be asked for by `Range`, to go on with a download that broke off. */
  readonly ranges?: true
  /** The last field of the path may hold slashes, written as they are or as `%2F`. */
  readonly slashes?: true
  /** Fields that ride in the query though the method has a body: they are part of what the address names. */
  readonly inQuery?: readonly string[]
  readonly deprecated?: Deprecation
  /** What its body carries, where the limit of other bodies will not do. */
  readonly carries?: Carries
  /** `raw`: the body is anything at all, and the handler reads it and the query as they come. */
  readonly body?: 'raw'
}

export type AnyOp = Op

/** What a request is made of: a row without what only its coordinator knows. The client is built on these alone. */
export interface Route extends Pick<AnyOp, 'id' | 'method' | 'path' | 'wire' | 'inQuery'> {
  /** It takes no API key. */
  readonly sessionOnly?: boolean | undefined
}

export function routeOf(row: AnyOp): Route {
  const { id, method, path, wire, inQuery } = row
  return { id, method, path, sessionOnly: isSessionOnly(row) || undefined, wire, inQuery }
}

type Guarded = Pick<AnyOp, 'credentials'>

/** Anybody may ask, without a credential. */
export const isPublic = ({ credentials }: Guarded) => credentials.length === 0

/** It is asked with a credential of an org, which has a role. */
export const isForCallers = ({ credentials }: Guarded) => credentials.includes('session')

/** A person has to ask: an API key does not serve. */
export const isSessionOnly = (row: Guarded) => isForCallers(row) && !row.credentials.includes('key')

/** Keeps the row's own types. */
export function op<I extends z.ZodObject, O extends z.ZodType>(row: Op<I, O>): Op<I, O> {
  return row
}

export type InputOf<R> = R extends Op<infer I, z.ZodType> ? z.output<I> : never
/** What a caller passes: fields with defaults may be left out. */
export type ArgsOf<R> = R extends Op<infer I, z.ZodType> ? z.input<I> : never
export type OutputOf<R> = R extends Op<z.ZodObject, infer O> ? z.output<O> : never
