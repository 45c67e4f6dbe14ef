import { spawn } from 'node:child_process'
import { once } from 'node:events'
import type { Command } from 'commander'
import type { LogSource } from '@windlass/agent/support/log-source.ts'
import { momentFlag, wholeNumber } from '../duration-flag.ts'
import { EXIT } from '../exit-codes.ts'
import { Failure } from '../failure.ts'
import { does } from '../session.ts'
import { clockText, paint, print, safe, timeText } from '../terminal.ts'
import type { Style } from '../terminal.ts'
import { addAgentFlags, agentAt, AGENT_FLAGS_HELP } from './agent-flags.ts'
import type { AgentFlags } from './agent-flags.ts'

const HELP = `${AGENT_FLAGS_HELP}
It reads the file that WINDLASS_AGENT_LOG_FILE names, else the journal of the unit. For a pipe, and with --json, lines are as they
were written.
  windlass agent logs -f
  windlass agent logs -n 500 --since 2h`

interface LogFlags extends AgentFlags {
  follow?: boolean
  lines: string
  since?: string
}

interface Wanted {
  count: number
  since: number | undefined
  isFollowed: boolean
  isPlain: boolean
}

export function addAgentLogs(group: Command): void {
  const command = group
    .command('logs')
    .description('Print what the agent of this machine has logged.')
    .option('-f, --follow', 'and what it logs from now on')
    .option('-n, --lines <number>', 'how many lines at most', '100')
    .option('--since <when>', 'not before: so long ago (2h), or a date')
    .addHelpText('after', HELP)
  addAgentFlags(command)
  does(command, async (session, _positional, options) => {
    const flags = options as unknown as LogFlags
    const wanted = wantedBy(flags, session.isJson)
    const { logSource } = await import('@windlass/agent/support/log-source.ts')
    const { config } = await agentAt(session, flags)
    return read(logSource(config.logFile), wanted)
  })
}

function wantedBy({ lines, since, follow = false }: LogFlags, isJson: boolean): Wanted {
  const count = wholeNumber('--lines', lines, 'agent logs -n 500')
  if (count < 0) throw new Failure('--lines takes a whole number of 0 or more.', 'windlass agent logs -n 500')
  const from = since === undefined ? undefined : momentFlag('--since', since, 'agent logs --since 2h')
  return { count, since: from, isFollowed: follow, isPlain: isJson || !process.stdout.isTTY }
}

async function read(source: LogSource, wanted: Wanted): Promise<number> {
  if (source.kind === 'none') throw new Failure(source.message, source.fix, EXIT.refused, 'NOT_FOUND')
  return source.kind === 'journal' ? readJournal(source.args, wanted) : readFile(source.file, wanted)
}

async function readFile(file: string, { count, since, isFollowed, isPlain }: Wanted): Promise<number> {
  const { lastLines, newLines, sizeOf } = await import('@windlass/agent/support/log-file.ts')
  const end = await sizeOf(file)
  const show = (line: string) => print(isPlain ? line : forEyes(line))
  for (const line of await lastLines(file, { count, end, ...(since !== undefined && { since }) })) show(line)
  if (!isFollowed) return EXIT.ok
  const stopped = new AbortController()
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, () => stopped.abort())
  for await (const line of newLines(file, end, stopped.signal)) show(line)
  return EXIT.interrupted
}

/** It knows how to page, to follow and to say what one may not read. */
async function readJournal(args: string[], { count, since, isFollowed }: Wanted): Promise<number> {
  const { journalctl } = await import('@windlass/agent/support/log-source.ts')
  const more = [
    '--output',
    'cat',
    '--no-pager',
    '--lines',
    String(count),
    ...(since === undefined ? [] : ['--since', `@${Math.floor(since / 1000)}`]),
    ...(isFollowed ? ['--follow'] : []),
  ]
  const child = spawn(journalctl() ?? 'journalctl', [...args, ...more], { stdio: ['ignore', 'inherit', 'inherit'] })
  // Ctrl-C reaches it too; we end when it has.
  process.once('SIGINT', () => undefined)
  const [code] = (await once(child, 'exit')) as [number | null]
  return code ?? EXIT.interrupted
}

const STYLES: Partial<Record<string, Style>> = { error: 'red', warn: 'yellow', debug: 'dim' }

/** Time, level, name and facts in one line. */
function forEyes(line: string): string {
  const parsed = parsedLine(line)
  if (!parsed) return safe(line, process.stdout)
  const { at, level, name, part: _part, agent: _agent, ...facts } = parsed
  const isToday = timeText(at).slice(0, 10) === timeText(Date.now()).slice(0, 10)
  const time = isToday ? clockText(at) : timeText(at)
  const said = Object.entries(facts).map(
    ([key, value]) => `${key}=${typeof value === 'string' ? value : JSON.stringify(value)}`,
  )
  const style = STYLES[level]
  const head = `${time}  ${style ? paint(style, name, process.stdout) : name}`
  return safe([head, ...said].join('  '), process.stdout)
}

interface LogLine {
  at: number
  level: string
  name: string
  [fact: string]: unknown
}

function parsedLine(line: string): LogLine | undefined {
  try {
    const value = JSON.parse(line) as Partial<LogLine> | null
    return typeof value?.at === 'number' && typeof value.name === 'string' ? (value as LogLine) : undefined
  } catch {
    // Printed by something else than our log.
    return undefined
  }
}
