/** Clients of MCP that others have written, each behind the same few words. */
import { createMCPClient } from '@ai-sdk/mcp'
import { Client as NewClient, StreamableHTTPClientTransport as NewTransport } from '@modelcontextprotocol/client'
import { Client as OldClient } from '@modelcontextprotocol/sdk/client/index.js'
import { StreamableHTTPClientTransport as OldTransport } from '@modelcontextprotocol/sdk/client/streamableHttp.js'

/** Where to, and as whom. `fetch` where a request is to go another way. */
export interface McpAccess {
  url: string
  apiKey: string
  fetch?: typeof fetch
}

export interface Hand {
  /** Names of the tools that are listed. */
  tools(): Promise<string[]>
  call(name: string, args?: Record<string, unknown>): Promise<Answer>
  /** The text of a resource. */
  read(uri: string): Promise<string>
  close(): Promise<void>
}

export interface Answer {
  isError: boolean
  /** The structured content; of an error what its text says. */
  // oxlint-disable-next-line typescript/no-explicit-any -- a test says by its assertions what it expects
  value: any
}

export type Connect = (access: McpAccess) => Promise<Hand>

const INFO = { name: 'windlass-e2e', version: '1' }
/** A call may wait 25 s for something to happen. */
const PATIENCE = { timeout: 40_000 }

const initOf = ({ apiKey }: McpAccess) => ({ headers: { authorization: `Bearer ${apiKey}` } })
const endpointOf = ({ url }: McpAccess) => new URL(`${url}/mcp/v1`)

/** The official client of the revisions of 2025. */
export const officialOld: Connect = async (access) => {
  const client = new OldClient(INFO)
  const transport = new OldTransport(endpointOf(access), { requestInit: initOf(access), fetch: access.fetch })
  await client.connect(transport)
  return {
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, args = {}) => answerOf(await client.callTool({ name, arguments: args }, undefined, PATIENCE)),
    read: async (uri) => textOf(await client.readResource({ uri })),
    close: () => client.close(),
  }
}

/** The official client of today, which speaks the new revision and nothing else. */
export const officialNew: Connect = async (access) => {
  const client = new NewClient(INFO, { versionNegotiation: { mode: { pin: '2026-07-28' } } })
  await client.connect(new NewTransport(endpointOf(access), { requestInit: initOf(access), fetch: access.fetch }))
  return {
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, args = {}) => answerOf(await client.callTool({ name, arguments: args }, PATIENCE)),
    read: async (uri) => textOf(await client.readResource({ uri })),
    close: () => client.close(),
  }
}

/** That of a toolkit for models. */
export const aiSdk: Connect = async (access) => {
  const { headers } = initOf(access)
  const transport = { type: 'http', url: endpointOf(access).href, headers, fetch: access.fetch } as const
  const client = await createMCPClient({ transport })
  return {
    tools: async () => (await client.listTools()).tools.map(({ name }) => name),
    call: async (name, args = {}) => answerOf(await client.callTool({ name, arguments: args, options: PATIENCE })),
    read: async (uri) => textOf(await client.readResource({ uri })),
    close: () => client.close(),
  }
}

/** Written by the text of the revision of March 2025 and nothing else: what somebody does who has no library. */
export const handMade: Connect = async (access) => {
  let id = 0
  const send = async (method: string, params: object): Promise<Record<string, unknown>> => {
    const response = await (access.fetch ?? fetch)(endpointOf(access), {
      method: 'POST',
      headers: {
        ...initOf(access).headers,
        'content-type': 'application/json',
        accept: 'application/json, text/event-stream',
      },
      body: JSON.stringify({ jsonrpc: '2.0', id: ++id, method, params }),
    })
    const { result, error } = (await response.json()) as {
      result?: Record<string, unknown>
      error?: { message: string }
    }
    if (!result) throw new Error(error?.message ?? `${method}: ${response.status}`)
    return result
  }
  await send('initialize', { protocolVersion: '2025-03-26', capabilities: {}, clientInfo: INFO })
  return {
    tools: async () => ((await send('tools/list', {}))['tools'] as { name: string }[]).map(({ name }) => name),
    call: async (name, args = {}) => answerOf(await send('tools/call', { name, arguments: args })),
    read: async (uri) => textOf(await send('resources/read', { uri })),
    close: () => Promise.resolve(),
  }
}

function answerOf(result: object): Answer {
  const {
    isError = false,
    structuredContent,
    content,
  } = result as {
    isError?: boolean
    structuredContent?: unknown
    content: { text: string }[]
  }
  return { isError, value: structuredContent ?? JSON.parse(content[0]!.text) }
}

function textOf(result: object): string {
  return (result as { contents: { text: string }[] }).contents[0]!.text
}
