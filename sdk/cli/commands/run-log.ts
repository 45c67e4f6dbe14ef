import type { Command } from 'commander'
import { ops } from '@windlass/shared/ops/index.ts'
import { type Channel, EVENT_PAGE_LEAST, type RunEvent } from '@windlass/shared/model/event.ts'
import type { OutputOf } from '@windlass/shared/ops/op.ts'
import type { Args } from '../../client/index.ts'
import { wholeNumber } from '../duration-flag.ts'
import { eventLine, logText } from '../event-line.ts'
import { followRun } from '../follow-run.ts'
import { rowArgs, rowCommand } from '../from-table.ts'
import { does } from '../session.ts'
import type { Session } from '../session.ts'
import { print, safe } from '../terminal.ts'

const PAGE = 1000

/** `runs logs` and `runs events`: the log of a run as it stands, or live with `-f`. */
export function addRunLogs(group: Command): void {
  const logs = group
    .command('logs')
    .description('Print what the program of a run has printed and logged.')
    .argument('<run>')
    .option('--since <number>', 'only events with a greater cursor', '0')
    .option('-f, --follow', 'go on until the run ends; the exit code tells how')
    .addHelpText('after', '\n  windlass runs logs run_… > output.txt')
  does(logs, async (session, [run = ''], options) => {
    const since = wholeNumber('--since', String(options['since']), 'runs logs <run> --since 17')
    const channels: Channel[] = ['log']
    if (options['follow'] === true) return followLogs(session, run, since, channels)
    const log = await wholeLog(session, { run, since, channels })
    await session.answer(log, () => printLines(log.events, logLine))
    return undefined
  })

  const events = rowCommand(group, 'events', ops.runs.events).option(
    '-f, --follow',
    'go on until the run ends; the exit code tells how',
  )
  does(events, async (session, positional, options) => {
    const args = await rowArgs(ops.runs.events, positional, options)
    if (options['follow'] === true) return followEvents(session, args)
    const line = (event: RunEvent) => eventLine(event, process.stdout)
    const log = await (args.limit === undefined ? wholeLog(session, args) : session.client.runs.events(args))
    await session.answer(log, () => printLines(log.events, line))
    return undefined
  })
}

type Page = OutputOf<typeof ops.runs.events>
type Query = Args<typeof ops.runs.events>

/** All pages as one. Large events make pages shorter than was asked for, but never shorter than the least. */
export async function wholeLog(session: Session, query: Query): Promise<Page> {
  const events: RunEvent[] = []
  for (;;) {
    const since = events.at(-1)?.cursor ?? query.since ?? 0
    const page = await session.client.runs.events({ ...query, since, limit: PAGE })
    events.push(...page.events)
    if (page.done || page.events.length < EVENT_PAGE_LEAST) return { events, done: page.done }
  }
}

export function printLines(events: RunEvent[], line: (event: RunEvent) => string): void {
  for (const event of events) print(line(event))
}

/** The text alone: a file or a pipe gets it as the program has written it, with all its lines. */
function logLine(event: RunEvent): string {
  const text = logText(event)
  return (process.stdout.isTTY ? safe(text, process.stdout) : text).replaceAll('\r', '')
}

async function followEvents(session: Session, { run: id, since, channels }: Query): Promise<number> {
  const { run } = await session.client.runs.get({ run: id })
  const line = (event: RunEvent) => eventLine(event, process.stdout)
  return followRun(session, run, { channels, since, line })
}

async function followLogs(session: Session, id: string, since: number, channels: Channel[]): Promise<number> {
  const { run } = await session.client.runs.get({ run: id })
  return followRun(session, run, { channels, since, line: logLine })
}
