import { resolve } from 'node:path'

export interface StartSettings {
  json: boolean
  home: string
  /** Undefined: the embedded server. */
  databaseUrl: string | undefined
  host: string
  port: number
  agentStopMs: number
  /** What the parts inherit. */
  env: NodeJS.ProcessEnv
}

const USAGE = 'npm start [-- --json]   (settings: WINDLASS_PORT, WINDLASS_HOME, WINDLASS_DATABASE_URL … see README)'

export function readSettings(args: string[], env: NodeJS.ProcessEnv): StartSettings {
  for (const arg of args) if (arg !== '--json') exit(`unknown argument ${arg}. Usage: ${USAGE}`)
  return {
    json: args.includes('--json'),
    home: resolve(env.WINDLASS_HOME || '.windlass'),
    databaseUrl: env.WINDLASS_DATABASE_URL || undefined,
    host: env.WINDLASS_HOST || '127.0.0.1',
    port: portOf(env.WINDLASS_PORT),
    agentStopMs: Number(env.WINDLASS_AGENT_STOP_MS || 10_000),
    env,
  }
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
