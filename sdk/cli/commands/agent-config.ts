import type { Command } from 'commander'
import type { ResolvedSetting } from '@windlass/agent/config.ts'
import { does } from '../session.ts'
import { printTable } from '../table.ts'
import { note, print } from '../terminal.ts'
import { addAgentFlags, agentAt, AGENT_FLAGS_HELP } from './agent-flags.ts'
import type { AgentFlags } from './agent-flags.ts'

const HELP = `${AGENT_FLAGS_HELP}
A flag counts more than the environment, that more than the settings file, that more than what the pool says, and that more than
the default.
  windlass agent config show --origin`

interface ConfigFlags extends AgentFlags {
  origin?: boolean
}

export function addAgentConfig(group: Command): void {
  const config = group.command('config').description('The settings of the agent.')
  const command = config
    .command('show')
    .description('Print the settings as they count.')
    .option('--origin', 'and who says each: environment, file, pool or default')
    .addHelpText('after', HELP)
  addAgentFlags(command)
  does(command, async (session, _positional, options) => {
    const flags = options as ConfigFlags
    const { config: agent, settingsFile } = await agentAt(session, flags)
    const { resolveSettings } = await import('@windlass/agent/config.ts')
    const { lastStatus, withPoolSaid } = await import('@windlass/agent/support/last-status.ts')
    const settings = withPoolSaid(resolveSettings(agent), lastStatus(agent.home))
    await session.answer({ settingsFile: settingsFile ?? null, settings }, async () => {
      if (flags.origin) {
        const rows = settings.map(({ name, value, origin }) => [name, textOf(value), originText(origin, settingsFile)])
        await printTable(['SETTING', 'VALUE', 'FROM'], rows)
      } else for (const { name, value } of settings) print(`${name}=${textOf(value)}`)
      if (settingsFile === undefined) note('There is no settings file.')
    })
  })
}

function textOf(value: unknown): string {
  if (value === undefined) return '-'
  return typeof value === 'string' ? value : Array.isArray(value) ? value.join(',') : JSON.stringify(value)
}

function originText(origin: ResolvedSetting['origin'], file: string | undefined): string {
  return origin === 'file' && file !== undefined ? file : origin
}
