import { join } from 'node:path'
import type { Client } from 'windlass/client'
import type { Instance } from './instance.ts'
import { ENDED_MS, watchAgent, type Watched } from './start-process.ts'

export interface AgentOptions {
  name: string
  /** Made when there is none. */
  pool: string
  slots?: number
  env?: Record<string, string>
  /** In place of the coordinator's own address: a proxy before it. */
  url?: string
  /** Arguments of Node before the program. */
  nodeArgs?: readonly string[]
}

/** An agent beside that of the instance: another machine, as far as the coordinator can tell. */
export interface TestAgent {
  readonly name: string
  process(): Watched
  /** SIGKILL; its programs are left to notice it. */
  kill(): Promise<void>
  /** SIGTERM, and its end. */
  stop(): Promise<void>
  /** Again in the same folder, with the same identity. */
  start(): Promise<void>
}

export async function startAgent(instance: Instance, options: AgentOptions): Promise<TestAgent> {
  const { name, pool, slots = 4, url = instance.access.url, nodeArgs = [] } = options
  const token = await tokenFor(instance.client, pool)
  const env = {
    WINDLASS_URL: url,
    WINDLASS_AGENT_HOME: join(instance.home, name),
    WINDLASS_AGENT_NAME: name,
    WINDLASS_AGENT_SLOTS: String(slots),
    WINDLASS_AGENT_STOP_MS: '10000',
    WINDLASS_AGENT_CONFIG: 'none',
    ...options.env,
  }
  let process = watchAgent({ env: { ...env, WINDLASS_AGENT_TOKEN: token }, nodeArgs })
  const isUp = async () => {
    try {
      await process.says('agent.started', ENDED_MS)
    } catch (error) {
      process.child.kill('SIGKILL')
      throw error
    }
  }
  await isUp()
  const isAlive = () => process.child.exitCode === null && process.child.signalCode === null
  return {
    name,
    process: () => process,
    async kill() {
      process.child.kill('SIGKILL')
      await process.ended()
    },
    async stop() {
      if (isAlive()) process.child.kill('SIGTERM')
      await process.ended()
    },
    async start() {
      if (isAlive()) return
      process = watchAgent({ env, nodeArgs })
      await isUp()
    },
  }
}

export async function ensurePool(client: Client, name: string): Promise<string> {
  const { runnerPools } = await client.pools.list({})
  const known = runnerPools.find((pool) => pool.name === name)
  return known?.id ?? (await client.pools.create({ name })).runnerPool.id
}

async function tokenFor(client: Client, pool: string): Promise<string> {
  const { registrationToken } = await client.pools.createToken({ pool: await ensurePool(client, pool) })
  return registrationToken.token
}
