import { spawnSync } from 'node:child_process'
import { existsSync } from 'node:fs'
import path from 'node:path'
import { toolPath } from '../isolation/tools.ts'
import { homeFolder } from '../os/home-folder.ts'

const UNIT = 'windlass-agent'

/** Where the lines of an agent are. */
export type LogSource =
  | { kind: 'file'; file: string }
  | { kind: 'journal'; args: string[] }
  | { kind: 'none'; message: string; fix: string }

/** A file that the settings name, else the journal of the unit that was installed. */
export function logSource(logFile: string | undefined, home = homeFolder()): LogSource {
  if (logFile !== undefined) return { kind: 'file', file: logFile }
  const unit = installedUnit(home)
  if (unit && journalctl()) return { kind: 'journal', args: unit }
  return {
    kind: 'none',
    message: 'This agent writes its log to the standard error of whatever started it, and keeps none.',
    fix: 'look there, or set WINDLASS_AGENT_LOG_FILE and start it again',
  }
}

export function journalctl(): string | undefined {
  return toolPath('journalctl')
}

const UNIT_FOLDERS = [
  '/etc/systemd/system',
  '/usr/local/lib/systemd/system',
  '/usr/lib/systemd/system',
  '/lib/systemd/system',
]

function installedUnit(home: string | undefined): string[] | undefined {
  const name = `${UNIT}.service`
  if (UNIT_FOLDERS.some((folder) => existsSync(path.join(folder, name)))) return ['--unit', name]
  if (home === undefined) return undefined
  const ofUser = path.join(home, '.config', 'systemd', 'user', name)
  return existsSync(ofUser) ? ['--user', '--unit', name] : undefined
}

/** The last lines of the journal, for who cannot be asked to look. Nothing where there are none or no right to read them. */
export function lastOfJournal(args: string[], lines: number): string | undefined {
  const tool = journalctl()
  if (tool === undefined) return undefined
  const asked = [...args, '--lines', String(lines), '--output', 'cat', '--no-pager', '--quiet']
  const { status, stdout } = spawnSync(tool, asked, { encoding: 'utf8', timeout: 10_000, maxBuffer: 64 * 1024 * 1024 })
  return status === 0 ? stdout : undefined
}
