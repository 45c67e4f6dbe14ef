/** /mcp/v1 as a client writes to it, in the words of either era. */
import type { Base } from '@windlass/shared/ops/base.ts'
import { DEADLINE_MS } from '@windlass/shared/test/_kit/until.ts'

export type Era = 'old' | 'new'
export const ERAS: readonly Era[] = ['old', 'new']
export const NEW_ERA = '2026-07-28'
export const OLD_ERA = '2025-11-25'

export interface Rpc {
  jsonrpc: '2.0'
  id?: number | string
  method: string
  params?: Record<string, unknown>
}

export interface RpcAnswer {
  status: number
  headers: Headers
  text: string
  /** What the text says, when it is JSON. */
  // oxlint-disable-next-line typescript/no-explicit-any -- a test says by its assertions what it expects
  body: any
}

export type Extra = Record<string, string>

/** The body as it is: a text, or a value to be written as JSON. */
export async function post(base: Base, body: unknown, headers: Extra = {}): Promise<RpcAnswer> {
  const all = { 'content-type': 'application/json', accept: 'application/json, text/event-stream', ...headers }
  const authorization: Extra = base.apiKey === undefined ? {} : { authorization: `Bearer ${base.apiKey}` }
  const response = await fetch(`${base.url}/mcp/v1`, {
    method: 'POST',
    headers: { ...authorization, ...all },
    body: typeof body === 'string' ? body : JSON.stringify(body),
    signal: AbortSignal.timeout(DEADLINE_MS),
  })
  const text = await response.text()
  const isJson = response.headers.get('content-type')?.startsWith('application/json')
  return { status: response.status, headers: response.headers, text, body: isJson ? JSON.parse(text) : undefined }
}

/** A request with all that the era wants to see. */
export function ask(base: Base, method: string, params: Record<string, unknown> = {}, era: Era = 'new') {
  const rpc: Rpc = { jsonrpc: '2.0', id: 1, method, params }
  if (era === 'old') return post(base, rpc, { 'mcp-protocol-version': OLD_ERA })
  return post(base, { ...rpc, params: { ...params, _meta: META } }, headersOf(method, params))
}

export const META = {
  'io.modelcontextprotocol/protocolVersion': NEW_ERA,
  'io.modelcontextprotocol/clientInfo': { name: 'test', version: '1' },
  'io.modelcontextprotocol/clientCapabilities': {},
}

export function headersOf(method: string, params: Record<string, unknown> = {}): Extra {
  const name = params['name'] ?? params['uri']
  const named: Extra = typeof name === 'string' ? { 'mcp-name': name } : {}
  return { 'mcp-protocol-version': NEW_ERA, 'mcp-method': method, ...named }
}

export interface Called {
  isError: boolean
  /** What the text says; of an error `{ error, next }`. */
  // oxlint-disable-next-line typescript/no-explicit-any -- as above
  value: any
  // oxlint-disable-next-line typescript/no-explicit-any -- as above
  structured: any
  texts: string[]
}

/** Calls a tool; throws for an error of the protocol. */
export async function tool(base: Base, name: string, args: Record<string, unknown> = {}, era: Era = 'new') {
  const { body } = await ask(base, 'tools/call', { name, arguments: args }, era)
  if (body.error) throw Object.assign(new Error(body.error.message), body.error)
  const { content, structuredContent, isError = false } = body.result
  const texts = (content as { text: string }[]).map(({ text }) => text)
  const called: Called = { isError, value: JSON.parse(texts[0]!), structured: structuredContent, texts }
  return called
}

/** The code of the refusal, with the path of the field where there is one. */
export async function refusedBy(base: Base, name: string, args: Record<string, unknown> = {}): Promise<string> {
  const { isError, value } = await tool(base, name, args)
  if (!isError) throw new Error(`${name} was not refused: ${JSON.stringify(value).slice(0, 500)}`)
  return [value.error.code, value.error.detail?.path].filter((part) => part !== undefined).join(' ')
}
