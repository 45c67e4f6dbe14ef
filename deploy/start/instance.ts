import { join } from 'node:path'
import { ensureKeyFile } from '@windlass/coordinator/environments/key-file.ts'
import { freePort } from '@windlass/coordinator/http/free-port.ts'
import { startDatabase } from './database.ts'
import { awaitEarlier, noteProcess, noteSupervisor } from './earlier.ts'
import { exampleWasShown, showExample } from './example.ts'
import { startLocalAgent } from './local-agent.ts'
import { keepCredentials, type LocalAccess, localCredentials } from './local-key.ts'
import { makeHome, ORG, writeAccess, writeAdmin } from './local-key.ts'
import { logFile, partEnvironment } from './part-settings.ts'
import { type Part, startPart } from './part.ts'
import { watchRoom } from './room.ts'
import type { StartSettings } from './settings.ts'
import { partFiles, stripTypes } from './strip.ts'
import type { Teller } from './tell.ts'

/** Over what the coordinator gives itself. */
const COORDINATOR_STOP_MS = 20_000

export interface Up {
  access: LocalAccess
  coordinator: Part
  agent: Part
}

/** How the instance is asked to end: in order, or, when that takes too long for somebody, at once. */
export interface Asked {
  stop: AbortSignal
  hurry?: AbortSignal
}

/** A step of the way up, and the two ways down. */
interface Step {
  stop(): Promise<void>
  end(): Promise<void>
}

/** Brings everything up, stays, and takes it down again in the reverse order. */
export async function runInstance(
  settings: StartSettings,
  tell: Teller,
  asked: Asked,
  onUp?: (up: Up) => Promise<void>,
): Promise<void> {
  const { stop, hurry = NEVER } = asked
  const steps: Step[] = []
  try {
    await awaitEarlier(settings.home, tell, stop)
    // Now, and not after the database was made and started.
    await freePort(settings.host, settings.port)
    await makeHome(settings.home)
    watchRoom(settings.home, tell, stop)
    const up = await bringUp(settings, tell, { stop, hurry }, steps)
    if (up) await onUp?.(up)
    await fired(stop)
  } finally {
    for (const step of steps.toReversed()) await takeDown(step, hurry)
  }
}

const NEVER = new AbortController().signal

const fired = (signal: AbortSignal): Promise<void> =>
  new Promise((resolve) => {
    if (signal.aborted) resolve()
    else signal.addEventListener('abort', () => resolve(), { once: true })
  })

async function takeDown(step: Step, hurry: AbortSignal): Promise<void> {
  const ended = fired(hurry).then(() => step.end())
  await (hurry.aborted ? ended : Promise.race([step.stop(), ended]))
}

async function bringUp(
  settings: StartSettings,
  tell: Teller,
  { stop, hurry }: Required<Asked>,
  steps: Step[],
): Promise<Up | undefined> {
  const since = performance.now()
  const { home } = settings
  const database = await startDatabase(settings, tell)
  steps.push(database)
  noteSupervisor(home)
  const nodeArgs = await stripTypes(join(home, 'cache/stripped'), partFiles())
  const credentials = await localCredentials(database.url, home)
  await makeKeyFile(settings)
  await writeAdmin(home, { databaseUrl: database.url, secretKeyFile: settings.secretKeyFile })
  tell.say(`database     ${settings.databaseUrl ? 'external' : join(home, 'postgres')}`)
  if (stop.aborted) return undefined

  const coordinator = startCoordinator(settings, nodeArgs, database.url, tell)
  steps.push(coordinator)
  await Promise.race([coordinator.ready, fired(hurry)])
  if (hurry.aborted) return undefined
  const { port } = (await coordinator.ready) as { port: number }
  const url = `http://${reachable(settings.host)}:${port}`
  tell.say(`coordinator  ${url}`)
  if (stop.aborted) return undefined

  const access = { url, org: ORG, ...credentials }
  await writeAccess(home, access)
  void keepCredentials(access, { databaseUrl: database.url, home, stop, fail: (sentence) => tell.fail(sentence) })
  const agent = await startLocalAgent(settings, { nodeArgs, access, tell })
  steps.push(agent.part)
  const isOnline = await agent.online(stop)
  if (isOnline) tell.say(`agent        local, pool ${agent.pool}`)
  if (stop.aborted) return undefined

  // A script waits for the one line; a person reads it best where the example's events have not scrolled it away.
  if (tell.json) tell.answer(access)
  if (isOnline && settings.example && !exampleWasShown(home)) await showExample(access, { home, tell, stop })
  if (!tell.json) tell.answer(access)
  tell.say(
    `Up in ${((performance.now() - since) / 1000).toFixed(1)} s. Ctrl-C stops everything. Try: npx windlass runs list`,
  )
  return { access, coordinator, agent: agent.part }
}

/** A file that was named is somebody's own: where it is missing, the coordinator says so. */
async function makeKeyFile({ secretKeyFile, env }: StartSettings): Promise<void> {
  if (secretKeyFile !== null && !env.WINDLASS_SECRET_KEY_FILE) await ensureKeyFile(secretKeyFile)
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
    ...(settings.secretKeyFile !== null && { WINDLASS_SECRET_KEY_FILE: settings.secretKeyFile }),
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
    onStart: (pid) => noteProcess(settings.home, 'coordinator', pid),
    onMessage: (message) => void (port = (message as { port: number }).port),
  })
}
