import path from 'node:path'
import type { AgentConfig } from '../config.ts'
import { readConfig } from '../config.ts'
import { readSettingsFile } from '../settings-file.ts'
import type { SettingsFile } from '../settings-file.ts'

export interface LocateOptions {
  env: Record<string, string | undefined>
  /** By the names of the settings. */
  flags: Record<string, string>
  /** The address to go by where no setting says one. */
  url?: string | undefined
}

/** The agent of this machine, whether it runs or not: by flags, environment, and the settings file of an installation. */
export interface Located {
  config: AgentConfig
  settingsFile: string | undefined
}

export function locateAgent(options: LocateOptions): Located {
  const { env, flags, url } = options
  const { file, values } = settingsFileOf(options)
  const known = url === undefined ? values : { WINDLASS_URL: url, ...values }
  return { config: readConfig(env, { flags, file: known }), settingsFile: file }
}

/** Whether some setting says the address of the coordinator. */
export function saysUrl(options: LocateOptions): boolean {
  return [options.flags, options.env, settingsFileOf(options).values].some((said) => Boolean(said['WINDLASS_URL']))
}

/** Its state folder, which needs no address, and not even settings that are right. */
export function locateHome(options: LocateOptions): string {
  const said = { ...settingsFileOf(options).values, ...onlyGiven(options.env), ...options.flags }
  return path.resolve(said['WINDLASS_AGENT_HOME'] ?? path.join(said['WINDLASS_HOME'] ?? '.windlass', 'agent'))
}

function settingsFileOf({ env, flags }: LocateOptions): SettingsFile {
  return readSettingsFile(flags['WINDLASS_AGENT_CONFIG'] ?? (env['WINDLASS_AGENT_CONFIG'] || undefined))
}

function onlyGiven(env: Record<string, string | undefined>): Record<string, string> {
  return Object.fromEntries(Object.entries(env).filter(([, value]) => value)) as Record<string, string>
}
