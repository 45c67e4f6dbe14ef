import type { z } from 'zod'
import { ApiError } from './api-error.ts'
import type { Base, CallOptions } from './base.ts'
import type { Op, Route } from './op.ts'
import { isUnsure, wasSent } from './lost-answer.ts'
import { refusalIn } from './whose-answer.ts'
import { pathNames, fillRoute } from './fill-route.ts'

const DEADLINE_MS = 60_000
/** What a timer of Node takes. */
const LONGEST_MS = 2 ** 31 - 1

type Args = Record<string, unknown>

/** Calls a row and reads its JSON. The answer is typed but not parsed, so that a newer coordinator may say more. */
export async function callOp<I extends z.ZodObject, O extends z.ZodType>(
  base: Base,
  row: Op<I, O>,
  args: z.input<I>,
  options?: CallOptions,
): Promise<z.output<O>> {
  return (await callRoute(base, row, args, options)) as z.output<O>
}

/** The same where no types are at hand. */
export async function callRoute(base: Base, route: Route, args: Args, options: CallOptions = {}): Promise<unknown> {
  const wait = deadline(base, route, options)
  try {
    const response = await send(base, route, args, { ...options, signal: wait.signal })
    if (response.status === 204) return undefined
    const text = await response.text()
    return parsed(response, text)
  } catch (error) {
    throw attributed(wait.explain(error), route, args)
  } finally {
    wait.over()
  }
}

/**
 * Calls a row whose answer is a stream or bytes, and returns once the headers are there. The deadline is for the
 * headers alone; after that only `signal` ends the stream.
 */
export async function openOp<I extends z.ZodObject, O extends z.ZodType>(
  base: Base,
  row: Op<I, O>,
  args: z.input<I>,
  options?: CallOptions,
): Promise<Response> {
  return openRoute(base, row, args, options)
}

/** The same where no types are at hand. */
export async function openRoute(base: Base, route: Route, args: Args, options: CallOptions = {}): Promise<Response> {
  const wait = deadline(base, route, options)
  try {
    return await send(base, route, args, { ...options, signal: wait.signal })
  } catch (error) {
    throw attributed(wait.explain(error), route, args)
  } finally {
    wait.headersAreHere()
  }
}

/** An error that names its call, and tells whether that may have been done: whatever does not only read. */
function attributed(error: unknown, { id, method, path }: Route, args: Args): unknown {
  if (!(error instanceof ApiError)) return error
  const names = Object.fromEntries(pathNames(path).map((name) => [name, String(args[name])]))
  return Object.assign(error, { operation: id, names, mayBeDone: method !== 'GET' && isUnsure(error) })
}

/** Waits for a question that several calls share, for as long as the signal and the deadline of this one let it. */
export async function inTime<T>(base: Base, row: Route, answer: Promise<T>, options: CallOptions = {}): Promise<T> {
  // The question has a deadline of its own, and waits at times until a limit lets it pass.
  const wait = deadline(base, row, { deadlineMs: LONGEST_MS, ...options })
  const stopped = new Promise<void>((resolve) => {
    if (wait.signal.aborted) resolve()
    wait.signal.addEventListener('abort', () => resolve(), { once: true })
  })
  const leave = async () => {
    await stopped
    wait.signal.throwIfAborted()
  }
  try {
    await Promise.race([answer, leave()])
    return await answer
  } catch (error) {
    throw wait.explain(error)
  } finally {
    wait.over()
  }
}

/** The URL, method, headers and body of a call. */
export function requestOf(base: Base, row: Route, args: Record<string, unknown>, more: Record<string, string> = {}) {
  for (const name of pathNames(row.path)) assertPathPart(row, name, args[name])
  const { path, query, body } = fillRoute(row, args)
  const text = body === undefined ? undefined : JSON.stringify(body)
  const headers: Record<string, string> = { accept: 'application/json', ...base.headers, ...more }
  if (base.apiKey !== undefined) headers['authorization'] = `Bearer ${base.apiKey}`
  if (text !== undefined) headers['content-type'] = 'application/json'
  const search = query.size > 0 ? `?${query.toString()}` : ''
  return { url: `${base.url.replace(/\/+$/, '')}${path}${search}`, method: row.method, headers, body: text }
}

/** `.` and `..` would be resolved by `fetch` into a different address; an empty part would name the list. */
function assertPathPart(row: Route, name: string, value: unknown): void {
  if (!['', '.', '..', undefined, null].includes(value as string)) return
  const given = JSON.stringify(value) ?? 'missing'
  const message = `\`${name}\` of ${row.id} must be given and name something; it is ${given}.`
  throw new ApiError(message, { status: 400, code: 'VALIDATION_FAILED', detail: { path: name } })
}

/** What cannot be sent is a mistake of the caller, and says nothing of whether the service is there. */
function sendable(base: Base, row: Route, args: Args, more: Record<string, string> | undefined) {
  assertCredential(base.apiKey)
  const request = requestWith(() => requestOf(base, row, args, more), row)
  assertHeaders(row, request.headers)
  return request
}

function requestWith<T>(make: () => T, row: Route): T {
  try {
    return make()
  } catch (cause) {
    if (cause instanceof ApiError) throw cause
    const why = cause instanceof Error ? cause.message : String(cause)
    const message = `What ${row.id} was given cannot be sent: ${why}.`
    throw new ApiError(message, { status: 400, code: 'VALIDATION_FAILED', cause })
  }
}

/** `fetch` would refuse it with the whole credential in its words, which end up in logs. */
function assertCredential(credential: string | undefined): void {
  if (credential === undefined || /^[\t\x20-\x7e]*$/.test(credential.trim())) return
  const message =
    'The API key or session cannot be sent: it holds a line break or another character that none has. ' +
    'Was it copied over two lines?'
  throw new ApiError(message, { status: 401, code: 'UNAUTHENTICATED' })
}

function assertHeaders(row: Route, headers: Record<string, string>): void {
  for (const [name, value] of Object.entries(headers)) {
    try {
      new Headers({ [name]: value })
    } catch {
      const message = `The header ${JSON.stringify(name)} of ${row.id} has a name or value that cannot be sent.`
      throw new ApiError(message, { status: 400, code: 'VALIDATION_FAILED' })
    }
  }
}

async function send(base: Base, row: Route, args: Args, options: CallOptions): Promise<Response> {
  const { url, ...init } = sendable(base, row, args, options.headers)
  // A followed redirect would turn a POST into a GET; the person is told the address instead.
  const once = () => (base.fetch ?? fetch)(url, { ...init, redirect: 'manual', signal: options.signal ?? null })
  const response = await once().catch((error: unknown) => {
    if (row.method !== 'GET' || !wasClosed(error)) throw error
    return once()
  })
  if (response.ok) return response
  throw refusal(response, await response.text())
}

/**
 * The other side closed the connection before it answered: it had been idle for so long that the coordinator, or a
 * proxy, closed it just as it was used again. What only reads is sent once more then, as browsers do.
 */
function wasClosed(error: unknown): boolean {
  const code = ((error as Error).cause as { code?: unknown } | undefined)?.code
  return code === 'UND_ERR_SOCKET' || code === 'ECONNRESET' || code === 'EPIPE'
}

/** The error that an answer outside 2xx stands for. */
function refusal(response: Response, text: string): ApiError {
  const requestId = response.headers.get('x-request-id') ?? undefined
  const location = response.headers.get('location')
  if (location !== null) {
    const message = `${response.url} redirects to ${location}; use that address.`
    return new ApiError(message, { status: response.status, code: 'BAD_ANSWER', requestId })
  }
  const said = refusalIn(text)
  if (!said) return badAnswer(response, text)
  return new ApiError(said.message, { status: response.status, code: said.code, detail: said.detail, requestId })
}

function parsed(response: Response, text: string): unknown {
  try {
    return JSON.parse(text)
  } catch (error) {
    throw badAnswer(response, text, error)
  }
}

function badAnswer(response: Response, text: string, cause?: unknown): ApiError {
  const start = text.slice(0, 120).replace(/\s+/g, ' ')
  const what = start || 'nothing'
  const message = `${response.url} answered ${response.status} with something that is not Windlass: ${what}`
  const requestId = response.headers.get('x-request-id') ?? undefined
  return new ApiError(message, { status: response.status, code: 'BAD_ANSWER', requestId, cause })
}

/** One signal out of the caller's and the deadline, and the words for the failure of either. */
function deadline(base: Base, row: Route, options: CallOptions) {
  const ms = options.deadlineMs ?? DEADLINE_MS
  const controller = new AbortController()
  const forward = () => controller.abort(options.signal?.reason)
  let late = false
  const timer = setTimeout(() => {
    late = true
    controller.abort()
  }, ms)
  if (options.signal?.aborted) forward()
  options.signal?.addEventListener('abort', forward, { once: true })
  return {
    signal: controller.signal,
    /** A stream stays bound to the caller's signal for as long as it is read. */
    headersAreHere: () => clearTimeout(timer),
    over: () => {
      clearTimeout(timer)
      options.signal?.removeEventListener('abort', forward)
    },
    explain: (error: unknown): unknown => {
      if (error instanceof ApiError || options.signal?.aborted) return error
      const why = late ? `no answer to ${row.id} within ${ms / 1000} s` : reasonOf(error)
      const isSent = row.method !== 'GET' && wasSent(error)
      const message = isSent
        ? `${row.id} was sent to ${base.url}, and its answer was lost: ${why}.`
        : `Cannot reach ${base.url}: ${why}. Is the coordinator running, and is the address right?`
      return new ApiError(message, { status: 0, code: 'UNREACHABLE', cause: error })
    },
  }
}

/** `fetch` says only "fetch failed"; what happened is in its cause, which for two addresses is an aggregate. */
function reasonOf(error: unknown): string {
  if (!(error instanceof Error)) return String(error)
  const { cause } = error
  if (cause instanceof AggregateError && cause.errors[0] instanceof Error) return cause.errors[0].message
  if (cause instanceof Error) return cause.message || cause.name
  return error.message
}
