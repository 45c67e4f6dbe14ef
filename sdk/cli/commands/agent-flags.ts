import type { Command } from 'commander'
import type { Located, LocateOptions } from '@windlass/agent/support/located.ts'
import { EXIT } from '../exit-codes.ts'
import { Failure } from '../failure.ts'
import type { Session } from '../session.ts'

/** Which agent of this machine is meant, where it is not the installed one. */
export interface AgentFlags {
  home?: string
  config?: string
  caFile?: string
  allowHttp?: boolean
}

export const AGENT_FLAGS_HELP = `
The agent that was installed here is found by itself, by its settings in /etc/windlass-agent/agent.env or
~/.config/windlass-agent/agent.env; another one by --config, --home, or the same variables that it was started with.`

export function addAgentFlags(command: Command): void {
  command
    .option('--home <folder>', 'the state folder of the agent')
    .option('--config <file>', 'the file with its settings')
}

/** Where settings come from, with the address of the local instance where nothing says another. */
export async function locateOptionsOf(session: Session, said: AgentFlags): Promise<LocateOptions> {
  const { saysUrl } = await import('@windlass/agent/support/located.ts')
  const { home, config, caFile, allowHttp } = said
  const given = {
    WINDLASS_URL: session.flags.url,
    WINDLASS_AGENT_HOME: home,
    WINDLASS_AGENT_CONFIG: config,
    WINDLASS_AGENT_CA_FILE: caFile,
    WINDLASS_AGENT_ALLOW_HTTP: allowHttp ? 'true' : undefined,
  }
  const flags = Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as Record<
    string,
    string
  >
  const options: LocateOptions = { env: process.env, flags }
  return asFailure(() => (saysUrl(options) ? options : { ...options, url: urlOfService(session) }))
}

/** The agent with its settings. */
export async function agentAt(session: Session, flags: AgentFlags): Promise<Located> {
  const { locateAgent } = await import('@windlass/agent/support/located.ts')
  const options = await locateOptionsOf(session, flags)
  return asFailure(() => locateAgent(options))
}

/** Its state folder, for what works without settings as well. */
export async function homeAt(session: Session, flags: AgentFlags): Promise<string> {
  const { locateHome } = await import('@windlass/agent/support/located.ts')
  const options = await locateOptionsOf(session, flags)
  return asFailure(() => locateHome(options))
}

/** Nothing where no service is named and none is found; who needs an address says so by itself. */
function urlOfService(session: Session): string | undefined {
  try {
    return session.settings.url
  } catch (error) {
    if (error instanceof Failure) return undefined
    throw error
  }
}

/**
 * A refusal of the agent as the command line says it. Its class is not loaded here, for it brings the agent along.
 */
function asFailure<T>(work: () => T): T {
  try {
    return work()
  } catch (error) {
    if (!(error instanceof Error) || error.name !== 'AgentRefusal') throw error
    throw new Failure(
      error.message,
      'windlass agent start --help, or --config and --home',
      EXIT.usage,
      'AGENT_SETTINGS',
    )
  }
}
