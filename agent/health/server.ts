import type { Server } from 'node:net'
import { once } from 'node:events'
import { AgentRefusal, EXIT } from '../exit-codes.ts'
import type { Log } from '@windlass/shared/log.ts'
import { pause } from '@windlass/shared/time.ts'
import type { Needs } from '@windlass/shared/needs.ts'
import type { createMetrics } from './metrics.ts'
import { createOneRequestServer, type Answer, type Asked } from './one-request.ts'
import { notReady } from './ready.ts'

export interface Health {
  /** Undefined: something else has it, and it listens once that has gone. */
  address: string | undefined
  close(): Promise<void>
}

type Endpoints = Record<string, () => Answer | Promise<Answer>>

/** Building the text takes as long as hundreds of answers. */
const METRICS_FOR_MS = 1_000

/** Answers whoever looks after the machine. It tells nothing that belongs to a run. */
export async function startHealth(
  deps: Needs<typeof createMetrics | typeof notReady> & { log: Log },
  { host, port }: { host: string; port: number },
): Promise<Health> {
  // Loaded where it is asked for only: it is of no use to most agents.
  const { createMetrics } = await import('./metrics.ts')
  const metrics = createMetrics(deps)
  const metricsText = builtOnceIn(METRICS_FOR_MS, () => metrics.metrics())
  const endpoints: Endpoints = {
    '/livez': () => json(200, { status: 'alive' }),
    '/readyz': () => {
      const problems = notReady(deps)
      return json(problems.length === 0 ? 200 : 503, {
        status: problems.length === 0 ? 'ready' : 'not ready',
        problems,
      })
    },
    '/metrics': async () => ({ status: 200, type: metrics.contentType, body: await metricsText() }),
  }
  const { server, close } = createOneRequestServer((asked) => answer(endpoints, asked), {
    onFailure: loggedOnce(deps.log),
  })
  const listens = await listen(server, host, port)
  if (listens) deps.log('health.listens', { url: addressOf(server) })
  else deps.log.error('health.taken', { address: `${host}:${port}`, advice: TAKEN })
  const end = new AbortController()
  const later = listens ? undefined : listenOnceFree(deps.log, { server, host, port, signal: end.signal })
  return {
    address: listens ? addressOf(server) : undefined,
    async close() {
      end.abort()
      await later
      if (server.listening) await close()
    },
  }
}

const TAKEN_MS = 1_000
const TAKEN =
  'something else listens at WINDLASS_AGENT_HEALTH, or its address is not there yet; ' +
  'the agent works, and tries again each second: end what listens there, or set another address'

/** A program of a run may have taken the port as the agent was killed: that must keep no agent from starting. */
async function listenOnceFree(
  log: Log,
  { server, host, port, signal }: { server: Server; host: string; port: number; signal: AbortSignal },
): Promise<void> {
  while (!signal.aborted) {
    await pause(TAKEN_MS, signal)
    try {
      if (signal.aborted || !(await listen(server, host, port))) continue
      return log('health.listens', { url: addressOf(server) })
    } catch (error) {
      // Nothing that passes: told once, and the agent works without it.
      return log.error('health.failed', { address: `${host}:${port}`, error })
    }
  }
}

function answer(endpoints: Endpoints, { method, path }: Asked): Answer | Promise<Answer> {
  const endpoint = Object.hasOwn(endpoints, path) ? endpoints[path] : undefined
  if (!endpoint) return json(404, known(endpoints))
  if (method === 'GET' || method === 'HEAD') return endpoint()
  return { ...json(405, known(endpoints)), allow: 'GET, HEAD' }
}

/** The first of each path: programs of runs could fill the log otherwise. */
function loggedOnce(log: Log): (error: unknown, asked: Asked) => void {
  const logged = new Set<string>()
  return (error, { path }) => {
    if (logged.has(path)) return
    logged.add(path)
    log.error('health.failed', { path, error })
  }
}

/** What failed is built again for the next who asks. */
function builtOnceIn(ms: number, build: () => Promise<string>): () => Promise<string> {
  let built: Promise<string> | undefined
  let builtAt = 0
  return () => {
    const now = performance.now()
    if (!built || now - builtAt >= ms) {
      builtAt = now
      const latest = build()
      built = latest
      latest.catch(() => {
        if (built === latest) built = undefined
      })
    }
    return built
  }
}

const json = (status: number, body: object): Answer => ({
  status,
  type: 'application/json',
  body: `${JSON.stringify(body)}\n`,
})
const known = (endpoints: object) => ({
  message: `There is ${Object.keys(endpoints).join(', ')}, to be read with GET.`,
})

/** False: another process listens there, or the address is not there. Both may pass. */
async function listen(server: Server, host: string, port: number): Promise<boolean> {
  server.listen(port, host)
  try {
    await once(server, 'listening')
  } catch (error) {
    const { message, code = '' } = error as NodeJS.ErrnoException
    if (code === 'EADDRINUSE' || code === 'EADDRNOTAVAIL') return false
    throw new AgentRefusal(EXIT.config, `WINDLASS_AGENT_HEALTH: ${message}`, { cause: error })
  }
  // One that cannot be accepted, as there are no more file descriptors, is lost for its caller alone.
  server.on('error', () => {})
  return true
}

function addressOf(server: Server): string {
  const at = server.address()
  return typeof at === 'object' && at
    ? `http://${at.family === 'IPv6' ? `[${at.address}]` : at.address}:${at.port}`
    : ''
}
