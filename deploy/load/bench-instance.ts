import { mkdtemp, rm } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { mintApiKey } from '@windlass/coordinator/test/_kit/credentials.ts'
import { ensureDefaults } from '@windlass/coordinator/accounts/bootstrap.ts'
import { type Db, openDatabase } from '@windlass/coordinator/db/client.ts'
import { startEmbedded } from '@windlass/coordinator/db/embedded.ts'
import { migrate } from '@windlass/coordinator/db/migrate.ts'
import { createLog } from '@windlass/shared/log.ts'
import { type Client, createClient } from 'windlass/client'
import { startPart } from '../start/part.ts'
import { stripTypes } from '../start/strip.ts'
import { createTeller } from '../start/tell.ts'

/** A whole installation as separate processes, for measuring: PostgreSQL with fsync, one coordinator, agents on demand. */
export interface BenchInstance {
  url: string
  apiKey: string
  client: Client
  db: Db
  postgresPid: number
  coordinatorPid: number
  /** Pid of a new agent that is online. */
  addAgent(options: { slots: number; spares?: number; parkedMs?: number }): Promise<BenchAgent>
  registrationToken(): Promise<string>
  stop(): Promise<void>
}

export interface BenchAgent {
  pid: number
  stop(): Promise<void>
}

const log = createLog({ process: 'bench' }, 'error')
const STOP_MS = 20_000
/** Limits that are looked at like any other, and never reached. */
const BOUNDLESS = { WINDLASS_LIMIT_IDENTITY_PER_MIN: '10000000', WINDLASS_LIMIT_ORG_PER_MIN: '10000000' }

export async function startBenchInstance(settings: Record<string, string> = {}): Promise<BenchInstance> {
  const home = await mkdtemp(join(tmpdir(), 'windlass-bench-'))
  const postgres = await startEmbedded({ home, log, settings })
  const database = openDatabase({ url: postgres.url, max: 2, log })
  await migrate(database, { log })
  const orgId = await ensureDefaults(database.db)
  const { key: apiKey } = await mintApiKey(database.db, { orgId, name: 'bench', role: 'owner' })
  const tell = createTeller(true)
  const nodeArgs = await stripTypes(home)
  const inherited = Object.fromEntries(Object.entries(process.env).filter(([name]) => !name.startsWith('WINDLASS_')))
  const env = {
    ...inherited,
    WINDLASS_HOME: home,
    WINDLASS_LOG_LEVEL: 'error',
    NODE_COMPILE_CACHE: join(home, 'cache'),
  }
  const coordinator = startPart({
    name: 'coordinator',
    module: '@windlass/coordinator/main.ts',
    nodeArgs,
    env: { ...env, ...BOUNDLESS, WINDLASS_DATABASE_URL: postgres.url, WINDLASS_PORT: '0' },
    logFile: undefined,
    tell,
    stopMs: STOP_MS,
  })
  const { port } = (await coordinator.ready) as { port: number }
  const url = `http://127.0.0.1:${port}`
  const client = createClient({ url, apiKey, org: 'default' })
  const stops: (() => Promise<void>)[] = []

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
    async addAgent({ slots, spares, parkedMs }) {
      const { runners: before } = await client.runners.list({ status: 'online' })
      const agent = startPart({
        name: 'agent',
        module: '@windlass/agent/main.ts',
        nodeArgs,
        env: {
          ...env,
          WINDLASS_URL: url,
          WINDLASS_AGENT_HOME: join(home, `agent-${stops.length}`),
          WINDLASS_AGENT_TOKEN: await registrationToken(),
          WINDLASS_AGENT_SLOTS: String(slots),
          WINDLASS_AGENT_STOP_MS: '10000',
          WINDLASS_AGENT_CONFIG: 'none',
          ...(spares === undefined ? {} : { WINDLASS_AGENT_SPARES: String(spares) }),
          ...(parkedMs === undefined ? {} : { WINDLASS_AGENT_PARKED_MS: String(parkedMs) }),
        },
        logFile: undefined,
        tell,
        stopMs: STOP_MS,
      })
      stops.push(() => agent.stop())
      await until(async () => (await client.runners.list({ status: 'online' })).runners.length > before.length, 20_000)
      return { pid: agent.pid()!, stop: () => agent.stop() }
    },
    async stop() {
      for (const stop of stops) await stop()
      await coordinator.stop()
      await database.close()
      await postgres.stop()
      await rm(home, { recursive: true, force: true })
    },
  }
}

/** Looks every 5 ms until it is so. */
export async function until(isSo: () => Promise<boolean> | boolean, withinMs: number): Promise<void> {
  const since = performance.now()
  while (!(await isSo())) {
    if (performance.now() - since > withinMs) throw new Error(`not so within ${withinMs} ms`)
    await new Promise((resolve) => setTimeout(resolve, 5))
  }
}
