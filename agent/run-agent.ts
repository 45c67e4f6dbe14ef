import { createLog } from '@windlass/shared/log.ts'
import type { Log } from '@windlass/shared/log.ts'
import { forgetToken, readConfig } from './config.ts'
import { AgentRefusal, EXIT } from './exit-codes.ts'
import { startAgent } from './start.ts'
import type { Agent } from './start.ts'

/** What a command line may say instead of the environment. */
export interface AgentFlags {
  url?: string | undefined
  token?: string | undefined
  name?: string | undefined
  slots?: string | number | undefined
  labels?: string | undefined
  /** Folder of the agent's state. */
  home?: string | undefined
}

/** The agent as a process: settings, signals and exit code. Resolves with the code when the agent has ended. */
export async function runAgent(flags: AgentFlags = {}, env: Record<string, string | undefined> = {}): Promise<number> {
  let log = createLog({ part: 'agent' })
  try {
    const config = readConfig({ ...env, ...fromFlags(flags) })
    forgetToken()
    log = createLog({ part: 'agent', agent: config.name }, config.logLevel)
    const early = new AbortController()
    const signals = watchSignals(log, () => early.abort())
    try {
      const agent = await startAgent(config, { log, signal: early.signal })
      signals.pass(agent)
      void agent.connected.then(() => tellStarter(agent.runner))
      log('agent.started', {
        runner: agent.runner,
        org: agent.org,
        pool: agent.pool,
        slots: config.slots,
        url: config.url,
      })
      return await agent.done
    } finally {
      signals.stop()
    }
  } catch (error) {
    if (!(error instanceof AgentRefusal)) {
      log.error('agent.failed', { error })
      return EXIT.internal
    }
    if (error.exitCode !== EXIT.stopped) log.error('agent.refused', { reason: error.message })
    return error.exitCode
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
  }
  const given = Object.entries(names).filter(([, value]) => value !== undefined)
  return Object.fromEntries(given.map(([name, value]) => [name, String(value)]))
}

/**
 * SIGTERM and SIGINT stop it with patience, the second one at once. The loss of the channel to the process that started
 * it counts as one: an agent must not outlive its supervisor unnoticed.
 */
function watchSignals(log: Log, early: () => void) {
  let agent: Agent | undefined
  const onSignal = (why: string) => {
    log('agent.asked-to-stop', { why })
    if (agent) agent.stop()
    else early()
  }
  const onDisconnect = () => onSignal('the process that started it is gone')
  process.on('SIGTERM', onSignal).on('SIGINT', onSignal)
  if (process.channel) process.on('disconnect', onDisconnect)
  return {
    pass: (started: Agent) => (agent = started),
    stop: () => process.off('SIGTERM', onSignal).off('SIGINT', onSignal).off('disconnect', onDisconnect),
  }
}
