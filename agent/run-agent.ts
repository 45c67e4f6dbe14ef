import { createLog, watchUncaught } from '@windlass/shared/log.ts'
import type { Log } from '@windlass/shared/log.ts'
import type { LogOut } from '@windlass/shared/log-out.ts'
import { forgetToken, readConfig } from './config.ts'
import type { AgentConfig } from './config.ts'
import { diskTrouble } from './disk-full.ts'
import { AgentRefusal, EXIT } from './exit-codes.ts'
import { closeInheritedFiles } from './inherited-files.ts'
import { openLogFile } from './log-file.ts'
import { PACES, type Paces } from './paces.ts'
import { readSettingsFile } from './settings-file.ts'
import { startAgent } from './start.ts'
import { createUrgency, type Urgency } from './stop.ts'
import { trustCaFile } from './trust.ts'
import { VERSION } from './version.ts'

/** What a command line may say instead of the environment. */
export interface AgentFlags {
  url?: string | undefined
  token?: string | undefined
  name?: string | undefined
  slots?: string | number | undefined
  labels?: string | undefined
  /** Folder of the agent's state. */
  home?: string | undefined
  /** File with settings. */
  config?: string | undefined
  caFile?: string | undefined
  allowHttp?: boolean | undefined
}

/** The agent as a process: settings, signals and exit code. Resolves with the code when the agent has ended. */
export async function runAgent(
  flags: AgentFlags = {},
  env: Record<string, string | undefined> = {},
  paces: Paces = PACES,
): Promise<number> {
  let log = createLog({ part: 'agent' })
  let home = ''
  watchUncaught((error) => log.error('agent.failed', { error }))
  closeInheritedFiles()
  try {
    const config = { ...configOf(flags, env), paces }
    home = config.home
    forgetToken()
    // Everybody on the machine may read command lines, runs among them.
    if (flags.token !== undefined) process.title = 'windlass agent start'
    log = createLog({ part: 'agent', agent: config.name }, config.logLevel, outOf(config))
    trustCaFile(config.caFile)
    const urgency = createUrgency()
    const unwatch = watchSignals(log, urgency)
    try {
      const agent = await startAgent(config, { log, urgency })
      void agent.connected.then(() => tellStarter(agent.runner))
      log('agent.started', {
        runner: agent.runner,
        org: agent.org,
        pool: agent.pool,
        slots: config.slots,
        url: config.url,
        version: VERSION,
      })
      return await agent.done
    } finally {
      unwatch()
    }
  } catch (error) {
    if (!(error instanceof AgentRefusal)) {
      const reason = diskTrouble(error, home, 'WINDLASS_AGENT_HOME')
      if (reason === undefined) log.error('agent.failed', { error })
      else log.error('agent.refused', { reason })
      return EXIT.internal
    }
    if (error.exitCode !== EXIT.stopped) log.error('agent.refused', { reason: error.message })
    return error.exitCode
  }
}

/** Flags count more than the environment, and that more than the file. */
export function configOf(flags: AgentFlags, env: Record<string, string | undefined>): AgentConfig {
  const said = fromFlags(flags)
  const { values } = readSettingsFile(said.WINDLASS_AGENT_CONFIG ?? env.WINDLASS_AGENT_CONFIG)
  return readConfig(env, { flags: said, file: values })
}

function outOf({ logFile }: AgentConfig): LogOut | undefined {
  if (logFile === undefined) return undefined
  try {
    return openLogFile(logFile)
  } catch (error) {
    throw new AgentRefusal(EXIT.config, `WINDLASS_AGENT_LOG_FILE: ${(error as Error).message}`, { cause: error })
  }
}

/** Who gave us a channel waits to hear that this agent, and not an earlier one of the same name, is there. */
function tellStarter(runner: string): void {
  if (process.connected) process.send?.({ ready: true, runner })
}

function fromFlags(flags: AgentFlags): Record<string, string> {
  const names = {
    WINDLASS_URL: flags.url,
    WINDLASS_AGENT_TOKEN: flags.token,
    WINDLASS_AGENT_NAME: flags.name,
    WINDLASS_AGENT_SLOTS: flags.slots,
    WINDLASS_AGENT_LABELS: flags.labels,
    WINDLASS_AGENT_HOME: flags.home,
    WINDLASS_AGENT_CONFIG: flags.config,
    WINDLASS_AGENT_CA_FILE: flags.caFile,
    WINDLASS_AGENT_ALLOW_HTTP: flags.allowHttp,
  }
  const given = Object.entries(names).filter(([, value]) => value !== undefined)
  return Object.fromEntries(given.map(([name, value]) => [name, String(value)]))
}

/** As long as whoever started it is there, nobody wonders why it goes on; afterwards it has to come to an end soon. */
const ORPHAN_MS = 10_000

/** The first SIGTERM or SIGINT stops it with patience, the second one asks its programs to stop, the third one kills them. */
function watchSignals(log: Log, urgency: Pick<Urgency, 'raise'>): () => void {
  let count = 0
  const stop = (why: string, order?: { withinMs: number }) => {
    count += 1
    log('agent.asked-to-stop', { why, times: count })
    urgency.raise(order)
  }
  const onSignal = (why: string) => stop(why)
  const onDisconnect = () => stop('the process that started it is gone', { withinMs: ORPHAN_MS })
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal)
  if (process.channel) process.on('disconnect', onDisconnect)
  return () => process.off('SIGTERM', onSignal).off('SIGINT', onSignal).off('disconnect', onDisconnect)
}
