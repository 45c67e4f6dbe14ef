import { createServer } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import type { AddressInfo } from 'node:net'
import type { TestContext } from 'node:test'
import { FAULTS, Fault } from '@windlass/shared/errors.ts'
import { fieldPath } from '@windlass/shared/field-path.ts'
import { allOps } from '@windlass/shared/ops/index.ts'
import { type AnyOp, isForCallers, isSessionOnly } from '@windlass/shared/ops/op.ts'
import { decodeStrings, pathNames } from '@windlass/shared/ops/fill-route.ts'

export const KEY = 'wl_test'
export const SESSION = 'wls_test'
export const ORG = 'acme'

interface Asked {
  id: string
  args: Record<string, unknown>
  headers: IncomingMessage['headers']
}

/**
 * Answers a row: a value becomes the JSON body, a thrown `Fault` its envelope; nothing when it has written by itself.
 */
export type Answerer = (args: Record<string, unknown>, response: ServerResponse, request: IncomingMessage) => unknown

export interface FakeService {
  url: string
  /** Every request that was let in, in order. */
  asked: Asked[]
  answers: Record<string, Answerer>
  /** For the test that wants it gone early; the end of the test closes it anyway. */
  close(): Promise<void>
}

/**
 * A stand-in for the service, made from the operation table: addresses, credentials and inputs are checked as the real
 * one does.
 */
export async function startFake(t: TestContext, answers: Record<string, Answerer> = {}): Promise<FakeService> {
  const asked: Asked[] = []
  const server = createServer((request, response) => {
    respond(answers, asked, request, response).catch((error: unknown) => refuse(response, error))
  })
  await new Promise<void>((resolve) => server.listen(0, '127.0.0.1', resolve))
  const close = () => closed(server)
  t.after(close)
  return { url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`, asked, answers, close }
}

function closed(server: Server): Promise<void> {
  if (!server.listening) return Promise.resolve()
  return new Promise((resolve) => {
    server.close(() => resolve())
    server.closeAllConnections()
  })
}

async function respond(
  answers: Record<string, Answerer>,
  asked: Asked[],
  request: IncomingMessage,
  response: ServerResponse,
) {
  const url = new URL(request.url ?? '/', 'http://fake')
  const { row, inPath } = find(request.method ?? 'GET', url.pathname)
  if (isForCallers(row)) admit(row, request.headers.authorization)
  const body = await bodyOf(request)
  const query = decodeStrings(row.input, Object.fromEntries(url.searchParams))
  const parsed = row.input.safeParse({ ...decodeStrings(row.input, inPath), ...query, ...body })
  if (!parsed.success) {
    const [issue] = parsed.error.issues
    throw new Fault('VALIDATION_FAILED', { path: fieldPath(issue?.path ?? []) }, issue?.message)
  }
  if ('org' in inPath && inPath['org'] !== ORG) throw new Fault('NOT_FOUND')
  asked.push({ id: row.id, args: parsed.data, headers: request.headers })
  const answer: unknown = await (answers[row.id] ?? missing)(parsed.data, response, request)
  if (answer === undefined) return
  response.writeHead(row.success, { 'content-type': 'application/json', 'x-request-id': 'req_test' })
  response.end(row.success === 204 ? undefined : JSON.stringify(answer))
}

function admit(row: AnyOp, authorization: string | undefined): void {
  if (authorization === `Bearer ${SESSION}`) return
  if (authorization !== `Bearer ${KEY}`) throw new Fault('UNAUTHENTICATED')
  if (isSessionOnly(row)) throw new Fault('FORBIDDEN', { needs: { session: true } }, 'An API key cannot do this.')
}

function missing(): never {
  throw new Fault('NOT_FOUND')
}

function find(method: string, pathname: string): { row: AnyOp; inPath: Record<string, string> } {
  for (const row of allOps) {
    const pattern = new RegExp(`^${row.path.replace(/\{\w+\}/g, '([^/]+)')}$`)
    const match = row.method === method ? pattern.exec(pathname) : null
    if (!match) continue
    const values = pathNames(row.path).map((name, index) => [name, decodeURIComponent(match[index + 1] ?? '')])
    return { row, inPath: Object.fromEntries(values) }
  }
  throw new Fault('NOT_FOUND')
}

async function bodyOf(request: IncomingMessage): Promise<Record<string, unknown>> {
  const chunks: Buffer[] = []
  for await (const chunk of request) chunks.push(chunk as Buffer)
  return chunks.length === 0 ? {} : (JSON.parse(Buffer.concat(chunks).toString()) as Record<string, unknown>)
}

function refuse(response: ServerResponse, error: unknown): void {
  const fault =
    error instanceof Fault
      ? error
      : new Fault('INTERNAL', undefined, error instanceof Error ? error.stack : String(error))
  if (response.headersSent) return void response.destroy()
  response.writeHead(FAULTS[fault.code][0], { 'content-type': 'application/json', 'x-request-id': 'req_test' })
  response.end(JSON.stringify({ error: { code: fault.code, message: fault.message, detail: fault.detail } }))
}
