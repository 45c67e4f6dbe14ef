import { join } from 'node:path'
import { createClient } from 'windlass/client'
import { freePort } from '@windlass/coordinator/http/free-port.ts'
import { pause } from '@windlass/shared/time.ts'
import { startDatabase } from './database.ts'
import { showExample } from './example.ts'
import { type LocalAccess, localKey, makeHome, ORG, writeAccess } from './local-key.ts'
import { type Part, startPart } from './part.ts'
import type { StartSettings } from './settings.ts'
import { stripTypes } from './strip.ts'
import type { Teller } from './tell.ts'

const POOL = 'default'
/** Over what the coordinator gives itself. */
const COORDINATOR_STOP_MS = 20_000
const AGENT_SPARE_MS = 10_000
const ONLINE_WITHIN_MS = 30_000

export interface Up {
  access: LocalAccess
  coordinator: Part
  agent: Part
}

/** Brings everything up, stays, and takes it down again in the reverse order. */
export async function runInstance(
  settings: StartSettings,
  tell: Teller,
  stop: AbortSignal,
  onUp?: (up: Up) => Promise<void>,
): Promise<void> {
  const downwards: (() => Promise<void>)[] = []
  try {
    // Now, and not after the database was made and started.
    await freePort(settings.host, settings.port)
    await makeHome(settings.home)
    const up = await bringUp(settings, tell, stop, downwards)
    if (up) await onUp?.(up)
    if (!stop.aborted)
      await new Promise<void>((resolve) => stop.addEventListener('abort', () => resolve(), { once: true }))
  } finally {
    for (const down of downwards.toReversed()) await down()
  }
}

async function bringUp(
  settings: StartSettings,
  tell: Teller,
  stop: AbortSignal,
  downwards: (() => Promise<void>)[],
): Promise<Up | undefined> {
  const since = performance.now()
  const { home } = settings
  const database = await startDatabase(settings, tell)
  downwards.push(() => database.stop())
  const nodeArgs = await stripTypes(home)
  const key = await localKey(database.url, home)
  tell.say(`database     ${settings.databaseUrl ? 'external' : join(home, 'postgres')}`)
  if (stop.aborted) return undefined

  const coordinator = startCoordinator(settings, nodeArgs, database.url, tell)
  downwards.push(() => coordinator.stop())
  const { port } = (await coordinator.ready) as { port: number }
  const url = `http://${reachable(settings.host)}:${port}`
  tell.say(`coordinator  ${url}`)
  if (stop.aborted) return undefined

  const access = { url, org: ORG, apiKey: key.apiKey }
  await writeAccess(home, access)
  const client = createClient(access)
  const agent = await startAgent(settings, nodeArgs, access, tell)
  downwards.push(() => agent.stop())
  await online(client, stop)
  tell.say(`agent        local, pool ${POOL}`)
  if (stop.aborted) return undefined

  // A script waits for the one line; a person reads it best where the example's events have not scrolled it away.
  if (tell.json) tell.answer(access)
  if (key.isNew && settings.example) await showExample(access, { home, tell, stop })
  if (!tell.json) tell.answer(access)
  tell.say(
    `Up in ${((performance.now() - since) / 1000).toFixed(1)} s. Ctrl-C stops everything. Try: npx windlass runs list`,
  )
  return { access, coordinator, agent }
}

/** As the host of a URL. What stands for all addresses is listened on, and is none that one can call. */
function reachable(host: string): string {
  if (host === '0.0.0.0') return '127.0.0.1'
  if (host === '::') return '[::1]'
  return host.includes(':') ? `[${host}]` : host
}

function startCoordinator(settings: StartSettings, nodeArgs: string[], databaseUrl: string, tell: Teller): Part {
  let port = settings.port
  const env = {
    ...partEnvironment(settings, () => true),
    WINDLASS_DATABASE_URL: databaseUrl,
    WINDLASS_HOST: settings.host,
  }
  return startPart({
    name: 'coordinator',
    module: '@windlass/coordinator/main.ts',
    nodeArgs,
    // Read at each start: a coordinator that is started again must be found where it was.
    get env() {
      return { ...env, WINDLASS_PORT: String(port) }
    },
    logFile: logFile(settings, 'coordinator'),
    tell,
    stopMs: COORDINATOR_STOP_MS,
    onMessage: (message) => void (port = (message as { port: number }).port),
  })
}

async function startAgent(
  settings: StartSettings,
  nodeArgs: string[],
  access: { url: string; org: string; apiKey: string },
  tell: Teller,
): Promise<Part> {
  const client = createClient(access)
  const { runnerPools } = await client.pools.list({})
  const pool = runnerPools.find(({ name }) => name === POOL)
  if (!pool) throw new Error(`The org ${ORG} has no pool ${POOL}`)
  // An agent that is registered already leaves the token unused; it expires by itself.
  const { registrationToken } = await client.pools.createToken({ pool: pool.id })
  const isTheAgents = (name: string) => name.startsWith('WINDLASS_AGENT_') || name === 'WINDLASS_LOG_LEVEL'
  return startPart({
    name: 'agent',
    module: '@windlass/agent/main.ts',
    nodeArgs,
    env: {
      WINDLASS_AGENT_NAME: 'local',
      ...partEnvironment(settings, isTheAgents),
      WINDLASS_URL: access.url,
      WINDLASS_HOME: settings.home,
      WINDLASS_AGENT_TOKEN: registrationToken.token,
    },
    logFile: logFile(settings, 'agent'),
    tell,
    stopMs: settings.agentStopMs + AGENT_SPARE_MS,
  })
}

/** Our environment, and of our own settings those that are meant for the part: an agent never sees the database. */
function partEnvironment(settings: StartSettings, isMeant: (name: string) => boolean): NodeJS.ProcessEnv {
  const kept = Object.entries(settings.env).filter(
    ([name]) => !name.startsWith('WINDLASS_') || name.startsWith('WINDLASS_TEST_') || isMeant(name),
  )
  return {
    ...Object.fromEntries(kept),
    WINDLASS_HOME: settings.home,
    NODE_COMPILE_CACHE: join(settings.home, 'cache', 'compile'),
  }
}

function logFile(settings: StartSettings, name: string): string | undefined {
  return settings.json ? undefined : join(settings.home, 'logs', `${name}.log`)
}

async function online(client: ReturnType<typeof createClient>, stop: AbortSignal): Promise<void> {
  const since = performance.now()
  while (!stop.aborted) {
    const { runners } = await client.runners.list({ pool: POOL, status: 'online' })
    if (runners.length > 0) return
    if (performance.now() - since > ONLINE_WITHIN_MS)
      throw new Error(`The local agent has not come online within ${ONLINE_WITHIN_MS / 1000} s; see its log.`)
    await pause(50, stop)
  }
}
