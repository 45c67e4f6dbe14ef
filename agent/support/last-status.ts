import path from 'node:path'
import type { ResolvedSetting } from '../config.ts'
import { AgentStatus, STATUS_FILE } from '../status/status.ts'
import { readOr } from './daemon.ts'

/** What the agent of a state folder wrote down last about itself. Nothing where it has written nothing that can be read here. */
export function lastStatus(home: string): AgentStatus | undefined {
  const found = readOr(path.join(home, STATUS_FILE))
  if (typeof found !== 'object') return undefined
  try {
    return AgentStatus.safeParse(JSON.parse(found.text)).data
  } catch (error) {
    if (error instanceof SyntaxError) return undefined
    throw error
  }
}

/** Settings as they count: what this machine leaves to its pool, the agent has heard and written down. */
export function withPoolSaid(settings: ResolvedSetting[], status: AgentStatus | undefined): ResolvedSetting[] {
  const said = new Map(status?.settings.map((setting) => [setting.name, setting]))
  return settings.map((setting) => {
    const known = said.get(setting.name)
    if (setting.origin !== 'default' || known?.origin !== 'pool') return setting
    return { ...setting, value: known.value, origin: 'pool' }
  })
}
