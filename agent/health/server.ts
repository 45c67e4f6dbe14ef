import { createServer } from 'node:http'
import type { IncomingMessage, Server, ServerResponse } from 'node:http'
import { once } from 'node:events'
import { AgentRefusal, EXIT } from '../exit-codes.ts'
import type { Needs } from '@windlass/shared/needs.ts'
import type { createMetrics } from './metrics.ts'
import { notReady } from './ready.ts'

interface Answer {
  status: number
  type?: string
  body: string
}

export interface Health {
  address: string
  close(): Promise<void>
}

/** Answers whoever looks after the machine. It tells nothing that belongs to a run. */
export async function startHealth(
  deps: Needs<typeof createMetrics | typeof notReady>,
  { host, port }: { host: string; port: number },
): Promise<Health> {
  // Loaded where it is asked for only: it is of no use to most agents.
  const { createMetrics } = await import('./metrics.ts')
  const metrics = createMetrics(deps)
  const endpoints: Record<string, () => Answer | Promise<Answer>> = {
    '/livez': () => json(200, { status: 'alive' }),
    '/readyz': () => {
      const problems = notReady(deps)
      return json(problems.length === 0 ? 200 : 503, {
        status: problems.length === 0 ? 'ready' : 'not ready',
        problems,
      })
    },
    '/metrics': async () => ({ status: 200, type: metrics.contentType, body: await metrics.metrics() }),
  }
  const server = createServer((request, response) => void answer(endpoints, request, response))
  await listen(server, host, port)
  return { address: addressOf(server), close: () => close(server) }
}

async function answer(
  endpoints: Record<string, () => Answer | Promise<Answer>>,
  { method, url = '/' }: IncomingMessage,
  response: ServerResponse,
): Promise<void> {
  const name = url.replace(/\?.*$/, '')
  const endpoint = Object.hasOwn(endpoints, name) ? endpoints[name] : undefined
  const isRead = method === 'GET' || method === 'HEAD'
  const {
    status,
    type = 'application/json',
    body,
  } = await (endpoint && isRead ? endpoint() : json(endpoint ? 405 : 404, known(endpoints)))
  response.writeHead(status, { 'content-type': type, ...(status === 405 && { allow: 'GET, HEAD' }) })
  response.end(method === 'HEAD' ? undefined : body)
}

const json = (status: number, body: object): Answer => ({ status, body: `${JSON.stringify(body)}\n` })
const known = (endpoints: object) => ({
  message: `There is ${Object.keys(endpoints).join(', ')}, to be read with GET.`,
})

async function listen(server: Server, host: string, port: number): Promise<void> {
  server.listen(port, host)
  try {
    await once(server, 'listening')
  } catch (error) {
    const { message } = error as Error
    throw new AgentRefusal(EXIT.config, `WINDLASS_AGENT_HEALTH: ${message}`, { cause: error })
  }
}

function addressOf(server: Server): string {
  const at = server.address()
  return typeof at === 'object' && at
    ? `http://${at.family === 'IPv6' ? `[${at.address}]` : at.address}:${at.port}`
    : ''
}

async function close(server: Server): Promise<void> {
  const closed = new Promise((resolve) => server.close(resolve))
  server.closeAllConnections()
  await closed
}
