import { randomBytes } from 'node:crypto'
import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mintApiKey } from '@windlass/coordinator/test/_kit/credentials.ts'
import { ensureDefaults } from '@windlass/coordinator/accounts/bootstrap.ts'
import { type Db, openDatabase } from '@windlass/coordinator/db/client.ts'
import { startEmbedded } from '@windlass/coordinator/db/embedded.ts'
import { migrate } from '@windlass/coordinator/db/migrate.ts'
import { createLog } from '@windlass/shared/log.ts'
import { within } from '@windlass/shared/time.ts'
import { type Client, createClient } from 'windlass/client'
import { startPart } from '../start/part.ts'
import { partFiles, stripTypes } from '../start/strip.ts'
import { createTeller } from '../start/tell.ts'
import { type Belongings, createBelongings } from './belongings.ts'
import { wait } from './measure.ts'
import { type SimulatedAgent, type SimulatedAgentOptions, startSimulatedAgent } from './simulated-agent.ts'

/** A whole installation as separate processes: PostgreSQL with fsync, one coordinator, agents on demand. */
export interface BenchInstance {
  url: string
  apiKey: string
  client: Client
  db: Db
  postgresPid: number
  coordinatorPid: number
  /** An agent that is online. */
  addAgent(options: AgentOptions): Promise<BenchAgent>
  /** Starts an agent that executes nothing. It ends with the instance, if not before. */
  simulateAgent(options: Omit<SimulatedAgentOptions, 'url' | 'token'>): Promise<SimulatedAgent>
  registrationToken(): Promise<string>
  stop(): Promise<void>
}

export interface AgentOptions {
  slots: number
  spares?: number
  parkedMs?: number
}

export interface BenchAgent {
  pid: number
  stop(): Promise<void>
}

const log = createLog({ process: 'bench' }, 'error')
const STOP_MS = 20_000
const READY_MS = 60_000
/** Limits that are looked at like any other, and never reached. */
const BOUNDLESS = {
  WINDLASS_LIMIT_IDENTITY_PER_MIN: '10000000',
  WINDLASS_LIMIT_ORG_PER_MIN: '10000000',
  WINDLASS_LIMIT_WAITING: '0',
  WINDLASS_LIMIT_ORG_WAITING: '0',
  WINDLASS_LIMIT_DELIVERIES_PER_MIN: '0',
}

export async function startBenchInstance(settings: Record<string, string> = {}): Promise<BenchInstance> {
  const own = createBelongings()
  try {
    return await startParts(own, settings)
  } catch (error) {
    await own.close()
    throw error
  }
}

async function startParts(own: Belongings, settings: Record<string, string>): Promise<BenchInstance> {
  const home = await own.add(mkdtemp(join(tmpdir(), 'windlass-bench-')), (path) =>
    rm(path, { recursive: true, force: true }),
  )
  const postgres = await own.add(startEmbedded({ home, log, settings }), (server) => server.stop())
  const database = openDatabase({ url: postgres.url, max: 2, log })
  own.defer(() => database.close())
  await migrate(database, { log })
  const orgId = await ensureDefaults(database.db)
  const { key: apiKey } = await mintApiKey(database.db, { orgId, name: 'bench', role: 'owner' })
  const parts = await partsIn(home, own)
  const { part: coordinator, said } = await parts.start('coordinator', {
    ...BOUNDLESS,
    WINDLASS_SECRET_KEY: randomBytes(32).toString('base64'),
    WINDLASS_DATABASE_URL: postgres.url,
    WINDLASS_PORT: '0',
  })
  const { port } = (await within(READY_MS, said, 'the coordinator did not say that it is ready')) as { port: number }
  const url = `http://127.0.0.1:${port}`
  const client = createClient({ url, apiKey, org: 'default' })

  async function registrationToken() {
    const { runnerPools } = await client.pools.list({})
    return (await client.pools.createToken({ pool: runnerPools[0]!.id })).registrationToken.token
  }
  return {
    url,
    apiKey,
    client,
    db: database.db,
    postgresPid: postgres.pid,
    coordinatorPid: coordinator.pid()!,
    registrationToken,
    async simulateAgent(options) {
      const starting = startSimulatedAgent({ ...options, url, token: await registrationToken() })
      return own.add(starting, (agent) => agent.close())
    },
    async addAgent(options) {
      const { runners: before } = await client.runners.list({ status: 'online' })
      const { part } = await parts.start('agent', {
        WINDLASS_URL: url,
        WINDLASS_AGENT_HOME: parts.agentHome(),
        WINDLASS_AGENT_TOKEN: await registrationToken(),
        ...settingsOf(options),
      })
      await until(
        async () => (await client.runners.list({ status: 'online' })).runners.length > before.length,
        READY_MS,
      )
      return { pid: part.pid()!, stop: () => part.stop() }
    },
    stop: () => own.close(),
  }
}

function settingsOf({ slots, spares, parkedMs }: AgentOptions): Record<string, string> {
  return {
    WINDLASS_AGENT_SLOTS: String(slots),
    WINDLASS_AGENT_STOP_MS: '10000',
    WINDLASS_AGENT_CONFIG: 'none',
    ...(spares !== undefined && { WINDLASS_AGENT_SPARES: String(spares) }),
    ...(parkedMs !== undefined && { WINDLASS_AGENT_PARKED_MS: String(parkedMs) }),
  }
}

/** Starts processes of the product as `npm start` does, each agent with a home of its own. */
async function partsIn(home: string, own: Belongings) {
  const tell = createTeller(true)
  const nodeArgs = await stripTypes(join(home, 'cache/stripped'), partFiles())
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('WINDLASS_')))
  const shared = {
    ...inherited,
    WINDLASS_HOME: home,
    WINDLASS_LOG_LEVEL: 'error',
    NODE_COMPILE_CACHE: join(home, 'cache'),
  }
  let agents = 0
  return {
    agentHome: () => join(home, `agent-${agents++}`),
    async start(name: 'coordinator' | 'agent', settings: Record<string, string>) {
      const env = { ...shared, ...settings }
      const module = `@windlass/${name}/main.ts`
      const part = startPart({ name, module, nodeArgs, env, logFile: undefined, tell, stopMs: STOP_MS })
      own.defer(() => part.stop())
      return { part, said: part.ready }
    },
  }
}

/** Looks every 5 ms, or as often as it is told, until it is so. */
export async function until(isSo: () => Promise<boolean> | boolean, withinMs: number, everyMs = 5): Promise<void> {
  const since = performance.now()
  while (!(await isSo())) {
    if (performance.now() - since > withinMs) throw new Error(`not so within ${withinMs} ms`)
    await wait(everyMs)
  }
}
