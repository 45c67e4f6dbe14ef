import { existsSync } from 'node:fs'
import { rename } from 'node:fs/promises'
import { type Client, createClient } from 'windlass/client'
import { identityFile, knownIdentity } from '@windlass/agent/identity.ts'
import { lockState } from '@windlass/agent/state-lock.ts'
import { ApiError } from '@windlass/shared/ops/api-error.ts'
import { pause } from '@windlass/shared/time.ts'
import { type LocalAccess, ORG } from './local-key.ts'
import { noteProcess } from './earlier.ts'
import { logFile, partEnvironment } from './part-settings.ts'
import { type Part, startPart } from './part.ts'
import type { StartSettings } from './settings.ts'
import type { Teller } from './tell.ts'

export interface LocalAgent {
  part: Part
  pool: string
  /** Waits until the coordinator has welcomed this agent, or until `stop` fires. False: it was revoked, and the rest goes on without it. */
  online(stop: AbortSignal): Promise<boolean>
}

const POOL = 'default'
/** Over what the agent gives the programs that run. */
const STOP_SPARE_MS = 10_000
const ONLINE_WITHIN_MS = 30_000

const isTheAgents = (name: string) =>
  (name.startsWith('WINDLASS_AGENT_') && name !== 'WINDLASS_AGENT_TOKEN') || name === 'WINDLASS_LOG_LEVEL'

export async function startLocalAgent(
  settings: StartSettings,
  { nodeArgs, access, tell }: { nodeArgs: string[]; access: LocalAccess; tell: Teller },
): Promise<LocalAgent> {
  const client = createClient(access)
  const identity = identityFile(settings.agentHome)
  await putAsideUnknown(client, settings.agentHome, tell)
  const token = existsSync(identity) ? undefined : await mintToken(client)
  const env = {
    WINDLASS_AGENT_NAME: 'local',
    // Of an agent that is installed on this machine, and is another one.
    WINDLASS_AGENT_CONFIG: 'none',
    WINDLASS_AGENT_STOP_MS: String(settings.agentStopMs),
    ...partEnvironment(settings, isTheAgents),
    WINDLASS_URL: access.url,
  }
  const part = startPart({
    name: 'agent',
    module: '@windlass/agent/main.ts',
    nodeArgs,
    // Read at each start. Programs can read the environment of the agent: a token that is still good must never be in it.
    get env() {
      return token === undefined || existsSync(identity) ? env : { ...env, WINDLASS_AGENT_TOKEN: token }
    },
    logFile: logFile(settings, 'agent'),
    tell,
    stopMs: settings.agentStopMs + STOP_SPARE_MS,
    onStart: (pid) => noteProcess(settings.home, 'agent', pid),
    // After kill -9 of an earlier start its agent holds the state folder for some seconds more.
    isPatient: true,
  })
  return {
    part,
    pool: POOL,
    async online(stop) {
      // Whoever revoked it is heard: it is not registered anew by itself. Forgetting it takes a coordinator, which has to start for that.
      if (await isRevoked(client, settings.agentHome, tell)) return false
      await online(part, stop)
      return true
    },
  }
}

/**
 * A database that was made anew does not know the agent of an older folder, and would refuse it for ever. The key is kept
 * beside: perhaps the settings name the wrong database.
 */
async function putAsideUnknown(client: Client, home: string, tell: Teller): Promise<void> {
  const known = knownIdentity(home)
  if (!known || (await isRegistered(client, known.runner))) return
  const file = identityFile(home)
  const lock = await lockState(home)
  try {
    await rename(file, `${file}.unknown`)
  } finally {
    await lock.release()
  }
  tell.say(`The database does not know the agent of ${home}. It is registered anew; its old key is ${file}.unknown.`)
}

async function isRegistered(client: Client, runner: string): Promise<boolean> {
  try {
    await client.runners.get({ runner })
    return true
  } catch (error) {
    if (error instanceof ApiError && error.code === 'NOT_FOUND') return false
    throw error
  }
}

async function isRevoked(client: Client, home: string, tell: Teller): Promise<boolean> {
  const known = knownIdentity(home)
  if (!known) return false
  const { runner } = await client.runners.get({ runner: known.runner })
  if (runner.intake.state !== 'revoked') return false
  const wayOut = `\`windlass runners deregister ${runner.id}\` forgets it; the next start registers it anew.`
  tell.fail(`The agent ${runner.name} was revoked, so that no run is executed here. ${wayOut}`)
  return true
}

async function mintToken(client: Client): Promise<string> {
  const { runnerPools } = await client.pools.list({})
  const pool = runnerPools.find(({ name }) => name === POOL)
  if (!pool) throw new Error(`The org ${ORG} has no pool ${POOL}`)
  return (await client.pools.createToken({ pool: pool.id })).registrationToken.token
}

async function online(part: Part, stop: AbortSignal): Promise<void> {
  const heard = new AbortController()
  const patience = AbortSignal.any([stop, heard.signal])
  const isHeard = part.ready.then(() => true)
  const tooLate = pause(ONLINE_WITHIN_MS, patience).then(() => false)
  try {
    if ((await Promise.race([isHeard, tooLate])) || stop.aborted) return
  } finally {
    heard.abort()
  }
  throw new Error(`The local agent has not come online within ${ONLINE_WITHIN_MS / 1000} s; see its log.`)
}
