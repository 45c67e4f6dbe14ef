import type { Command } from 'commander'
import { CHANNELS } from '@windlass/shared/model/event.ts'
import type { Channel, RunEvent } from '@windlass/shared/model/event.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import { momentFlag } from '../duration-flag.ts'
import { eventLine } from '../event-line.ts'
import { Failure } from '../failure.ts'
import { followRun } from '../follow-run.ts'
import { runOf } from '../newest-run.ts'
import { does } from '../session.ts'
import { note } from '../terminal.ts'
import { printLines, wholeLog } from './run-log.ts'

const SHOWN: Channel[] = ['lifecycle', 'phase', 'output', 'log']

const HELP = `
<run> is the id of a run, or a workflow: its newest run is meant.
  windlass logs hello -f                   follows the newest run of hello, through lost connections, to its end
  windlass logs run_… --since 10m          what happened in the last ten minutes
  windlass logs run_… --channels log       what the program printed; \`runs logs\` prints it without the times`

/** `logs`: what happened in a run, readable, as it stands or live. */
export function addLogs(program: Command): void {
  const command = program
    .command('logs')
    .description('Show what happened in a run; with -f live, to its end.')
    .argument('<run>', 'id of a run, or a workflow for its newest run')
    .option('-f, --follow', 'go on until the run ends; the exit code tells how')
    .option('--channels <list>', `comma-separated, of ${CHANNELS.join(', ')}`, SHOWN.join(','))
    .option('--since <when>', 'only what is newer: so long ago (10m), a date, or the cursor of an event')
    .addHelpText('after', HELP)
  does(command, async (session, [given = ''], options) => {
    const channels = channelsOf(String(options['channels']))
    const from = sinceOf(options['since'] as string | undefined)
    const run = await runOf(session, given)
    const line = (event: RunEvent) => eventLine(event, process.stdout)
    if (options['follow'] === true) return followRun(session, run, { channels, ...from, line })
    const log = await wholeLog(session, { run: run.id, since: from.since, channels })
    const events = log.events.filter((event) => event.at >= from.notBefore)
    await session.answer({ events, done: log.done }, () => {
      printLines(events, line)
      if (!log.done) note(standText(run))
    })
    return undefined
  })
}

function channelsOf(text: string): Channel[] {
  const given = text.split(',').filter((name) => name !== '')
  const wrong = given.find((name) => !CHANNELS.includes(name as Channel))
  if (wrong === undefined && given.length > 0) return given as Channel[]
  throw new Failure(
    `--channels takes ${CHANNELS.join(', ')}, not \`${wrong ?? ''}\`.`,
    'windlass logs <run> --channels log,phase',
  )
}

function sinceOf(text: string | undefined): { since: number; notBefore: number } {
  if (text === undefined) return { since: 0, notBefore: 0 }
  if (/^\d{1,9}$/.test(text)) return { since: Number(text), notBefore: 0 }
  return { since: 0, notBefore: momentFlag('--since', text, 'logs <run> --since 10m') }
}

function standText({ id, status, blocked }: Run): string {
  if (blocked) return `It is blocked, and waits for somebody to decide. Next: windlass runs why ${id}`
  return `It is ${status.replaceAll('_', ' ')}. Next: windlass logs -f ${id}`
}
