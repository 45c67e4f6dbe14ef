import { readFileSync } from 'node:fs'
import path from 'node:path'
import { parseEnv } from 'node:util'
import { AgentRefusal, EXIT } from './exit-codes.ts'
import { homeFolder } from './os/home-folder.ts'
import { readOrNothing } from './os/process-id.ts'

export interface SettingsFile {
  /** Undefined: there is none. */
  file: string | undefined
  values: Record<string, string>
}

const NONE = 'none'

/** Where an agent that was installed on this machine has its settings. */
export function usualFiles(home = homeFolder()): string[] {
  const own = home === undefined ? [] : [path.join(home, '.config', 'windlass-agent', 'agent.env')]
  return ['/etc/windlass-agent/agent.env', ...own]
}

/** `named` is what WINDLASS_AGENT_CONFIG says. One that is named has to be there; of the usual places the first that can be read counts. */
export function readSettingsFile(named: string | undefined, files = usualFiles()): SettingsFile {
  if (named === NONE) return { file: undefined, values: {} }
  if (named) return { file: path.resolve(named), values: parsed(named, readNamed(named)) }
  for (const file of files) {
    const text = readOrNothing(file)
    if (text !== undefined) return { file, values: parsed(file, text) }
  }
  return { file: undefined, values: {} }
}

function readNamed(file: string): string {
  try {
    return readFileSync(file, 'utf8')
  } catch (error) {
    const { message } = error as Error
    throw new AgentRefusal(EXIT.config, `WINDLASS_AGENT_CONFIG names a file that cannot be read: ${message}`)
  }
}

/** The parser passes over what it does not understand; a line that says nothing would be missed by nobody. */
function parsed(file: string, text: string): Record<string, string> {
  const odd = text.split('\n').findIndex((line) => !/^\s*(#.*|(export\s+)?[A-Za-z_]\w*\s*=.*)?$/.test(line))
  if (odd < 0) return parseEnv(text) as Record<string, string>
  throw new AgentRefusal(EXIT.config, `${file}, line ${odd + 1}: write NAME=value on one line, or # before a comment.`)
}
