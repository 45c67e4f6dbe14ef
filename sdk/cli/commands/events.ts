import type { Command } from 'commander'
import type { OrgEvent } from '@windlass/shared/model/event.ts'
import { eventLine } from '../event-line.ts'
import { EXIT } from '../exit-codes.ts'
import { Failure } from '../failure.ts'
import { does, type Session } from '../session.ts'
import { paint, print, safe } from '../terminal.ts'

const HELP = `
  windlass events                                    what happens from now on, until Ctrl-C
  windlass events --workflow billing --types failed  only the failures of one workflow
  windlass events --since 5f0c2a9be4d1.1041          what came since, where it is not longer ago than a day
With --json each event is a line; its \`position\` is what --since takes.`

/** `events`: what happens to all runs of the org, live. */
export function addEvents(program: Command): void {
  const command = program
    .command('events')
    .description('Follow what happens to the runs of the org, live.')
    .option('--since <position>', 'go on behind this position; from now on when left out')
    .option('--workflow <slug>', 'only runs of this workflow')
    .option('--types <list>', 'comma-separated: queued, running, completed, failed, …')
    .addHelpText('after', HELP)
  does(command, async (session, _, options) => {
    const isWanted = wantedOf(options)
    await tell(session, options['since'] as string | undefined, isWanted)
    return undefined
  })
}

function wantedOf({ workflow, types }: { workflow?: string; types?: string }): (event: OrgEvent) => boolean {
  const names = types?.split(',').map((name) => `run.${name.trim().replace(/^run\./, '')}`)
  return (event) =>
    (workflow === undefined || event.workflow === workflow) && (names === undefined || names.includes(event.type))
}

async function tell(session: Session, since: string | undefined, isWanted: (event: OrgEvent) => boolean) {
  const { client, progress, isJson } = session
  const stop = new AbortController()
  let position = since
  const interrupt = () => stop.abort(interrupted(position))
  for (const signal of ['SIGINT', 'SIGTERM'] as const) process.once(signal, interrupt)
  try {
    const onReady = (at: string, isReset: boolean) => {
      position = at
      if (isReset && isJson) print(JSON.stringify({ type: 'reset', position: at }))
      else if (isReset) progress.note(paint('yellow', `Events behind ${since ?? 'the last one'} are gone. ${WAY_ON}`))
      else progress.note(paint('dim', 'following'))
    }
    const onReconnect = (why: string) =>
      isJson || progress.note(paint('dim', safe(`connection lost (${why}), trying again`, process.stderr)))
    for await (const event of client.followOrg({ since, signal: stop.signal, onReady, onReconnect })) {
      position = event.position
      if (isWanted(event)) progress.print(isJson ? JSON.stringify(event) : lineOf(event))
    }
  } finally {
    for (const signal of ['SIGINT', 'SIGTERM'] as const) process.off(signal, interrupt)
    progress.end()
  }
}

const WAY_ON = '`windlass runs list` shows where the runs stand; what happens from here on follows.'

function interrupted(position: string | undefined): Failure {
  const goOn = `windlass events${position === undefined ? '' : ` --since ${position}`} to go on`
  return new Failure('No longer following.', goOn, EXIT.interrupted, 'INTERRUPTED')
}

/** The line of `logs`, with what it is about. */
function lineOf(event: OrgEvent): string {
  const about = safe(`${event.workflow ?? '–'}  ${event.run}`, process.stdout)
  return `${eventLine({ ...event, channel: 'lifecycle' }, process.stdout)}  ${paint('dim', about, process.stdout)}`
}
