import { join, resolve } from 'node:path'
import { readConfig as readAgentConfig } from '@windlass/agent/config.ts'
import { readConfig as readCoordinatorConfig } from '@windlass/coordinator/config.ts'

export interface StartSettings {
  json: boolean
  home: string
  /** Undefined: the embedded server. */
  databaseUrl: string | undefined
  host: string
  port: number
  /** Where the keys are by which secrets are sealed; null: they stand in the environment. */
  secretKeyFile: string | null
  /** State folder of the local agent. */
  agentHome: string
  agentStopMs: number
  /** Whether the example is deployed and executed, once per home. */
  example: boolean
  /** What the parts inherit. */
  env: NodeJS.ProcessEnv
}

const USAGE = 'npm start [-- --json]   (settings: WINDLASS_PORT, WINDLASS_HOME …; see deploy/docs/settings.md)'

export function readSettings(args: string[], env: NodeJS.ProcessEnv): StartSettings {
  for (const arg of args) if (arg !== '--json') exit(`unknown argument ${arg}. Usage: ${USAGE}`)
  const unknown = Object.keys(env).find((name) => name.startsWith(OURS) && name !== 'WINDLASS_START_EXAMPLE')
  if (unknown) exit(`${unknown} is no setting. Known: WINDLASS_START_EXAMPLE`)
  const theirs = Object.fromEntries(Object.entries(env).filter(([name]) => !name.startsWith(OURS)))
  const { agentHome } = checkParts(theirs)
  const home = resolve(env.WINDLASS_HOME || '.windlass')
  return {
    json: args.includes('--json'),
    home,
    databaseUrl: env.WINDLASS_DATABASE_URL || undefined,
    host: env.WINDLASS_HOST || '127.0.0.1',
    port: portOf(env.WINDLASS_PORT),
    secretKeyFile: env.WINDLASS_SECRET_KEY ? null : resolve(env.WINDLASS_SECRET_KEY_FILE || join(home, 'secret.key')),
    agentHome,
    agentStopMs: Number(env.WINDLASS_AGENT_STOP_MS || 10_000),
    example: flagOf('WINDLASS_START_EXAMPLE', env.WINDLASS_START_EXAMPLE),
    env: theirs,
  }
}

/** The settings of ourselves alone begin so; the others belong to the parts, and each part refuses those it does not know. */
const OURS = 'WINDLASS_START_'

/** Asks the parts whether they could start so: now, and not after the database was made and each of them was tried. */
function checkParts(env: NodeJS.ProcessEnv): { agentHome: string } {
  try {
    readCoordinatorConfig({ ...env, WINDLASS_DATABASE_URL: env.WINDLASS_DATABASE_URL || 'postgres://embedded' })
    const { home } = readAgentConfig({
      ...env,
      WINDLASS_URL: 'http://localhost',
      WINDLASS_AGENT_NAME: env.WINDLASS_AGENT_NAME || 'local',
    })
    return { agentHome: home }
  } catch (error) {
    return exit((error as Error).message)
  }
}

function flagOf(name: string, text: string | undefined): boolean {
  if (!text || text === 'true') return true
  if (text === 'false') return false
  return exit(`${name} must be true or false, not ${text}`)
}

function portOf(text: string | undefined): number {
  const port = Number(text || 8787)
  if (Number.isInteger(port) && port >= 0 && port <= 65_535) return port
  return exit(`WINDLASS_PORT must be a port number from 0 to 65535, not ${text}`)
}

function exit(message: string): never {
  process.stderr.write(`${message}\n`)
  process.exit(78)
}
