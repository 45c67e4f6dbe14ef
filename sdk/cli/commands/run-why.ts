import type { Command } from 'commander'
import { ops } from '@windlass/shared/ops/index.ts'
import { isSuspended, type Loss } from '@windlass/shared/model/run.ts'
import type { Cause, Why } from '@windlass/shared/model/why.ts'
import { rowCommand } from '../from-table.ts'
import { runOf } from '../newest-run.ts'
import { does } from '../session.ts'
import { printTable } from '../table.ts'
import { lengthText, paint, print, safe, timeText } from '../terminal.ts'
import type { Style } from '../terminal.ts'

const HELP = `
<run> is the id of a run, or a workflow: its newest run is meant.
  windlass runs why hello`

/** `runs why`: what a run waits for, since when, and who could change that. */
export function addWhy(group: Command): void {
  const command = rowCommand(group, 'why', ops.runs.why).addHelpText('after', HELP)
  does(command, async (session, [given = '']) => {
    const run = given.startsWith('run_') ? given : (await runOf(session, given)).id
    const answer = await session.client.runs.why({ run })
    await session.answer(answer, () => tell(answer.why))
  })
}

async function tell(why: Why): Promise<void> {
  const bold = (text: string) => paint('bold', text, process.stdout)
  const since = `since ${timeText(why.since)} (${lengthText(Math.max(0, Date.now() - why.since))})`
  print(`${bold(`${why.run} is ${why.status.replaceAll('_', ' ')}`)} ${since}`)
  // A single cause says it all.
  if (why.summary !== why.causes[0]?.message) print(safe(why.summary, process.stdout))
  if (isSuspended(why.status) && why.causes[0]?.code !== 'BLOCKED') print(processText(why.process))
  for (const cause of why.causes) for (const line of linesOf(cause)) print(line)
  await tellLosses(why.losses)
  if (why.runners.length === 0) return
  print('')
  const rows = why.runners.map((runner) => [runner.id, runner.name, runner.takes ? 'yes' : 'no', runner.reason])
  await printTable(['RUNNER', 'NAME', 'TAKES IT', 'WHY'], rows)
}

const LOST: Record<Loss['what'], string> = {
  program: 'its process',
  daemon: 'the agent',
  host: 'the machine',
  network: 'the connection',
  unknown: 'not known yet',
  operator: 'taken away',
}

/** How it changed hands, the last time first. */
async function tellLosses(losses: readonly Loss[]): Promise<void> {
  if (losses.length === 0) return
  print('')
  const at = (time: number | null) => (time === null ? '' : timeText(time))
  const rows = losses.map((loss) => [
    timeText(loss.at),
    String(loss.attempt),
    loss.runner?.name ?? '',
    LOST[loss.what],
    at(loss.lastAckAt),
    at(loss.lastRenewalAt),
    `${loss.reason}${lengthened(loss)}`,
  ])
  await printTable(['LOST', 'ATTEMPT', 'RUNNER', 'WHAT', 'LAST ENTRY', 'LAST RENEWAL', 'WHY'], rows)
}

/** By how much the lease was lengthened after an outage of the coordinator or database. */
const lengthened = ({ lengthenedMs }: Loss) =>
  lengthenedMs === null ? '' : ` (after its lease was lengthened by ${lengthText(lengthenedMs)})`

const PROCESS_STATES: Record<NonNullable<Why['process']>['place'], string> = {
  starting: 'is being started',
  executing: 'executes',
  replaying: 'is led back to where it stood',
  parked: 'is parked, without a slot,',
}

function processText(process: Why['process']): string {
  if (!process) return 'It has no process now; any runner of its pool continues it.'
  const { place, runner } = process
  return `Its process ${PROCESS_STATES[place]} on ${runner.name} (${runner.id}).`
}

const STYLES: Partial<Record<Cause['code'], Style>> = {
  BLOCKED: 'red',
  NO_RUNNER: 'red',
  LABELS_MISSING: 'red',
  SLOTS_MISSING: 'red',
  RUNNERS_UNFIT: 'red',
  RUNNERS_CLOSED: 'red',
  RUNNER_SILENT: 'red',
  REPORTS_REFUSED: 'red',
  INPUT: 'yellow',
  CONCURRENCY_LIMIT: 'yellow',
}

/** The cause, and under it what is known of it. */
function linesOf(cause: Cause): string[] {
  const facts = [
    cause.since === null ? '' : `since ${timeText(cause.since)}`,
    cause.until === null ? '' : `until ${timeText(cause.until)}`,
    cause.at === undefined ? '' : `at ${cause.at}`,
  ].filter((text) => text !== '')
  return [
    '',
    `${paint(STYLES[cause.code] ?? 'cyan', cause.code, process.stdout)}  ${cause.message}`,
    ...(facts.length > 0 ? [`  ${facts.join(', ')}`] : []),
    ...(cause.runIds?.length ? [`  runs: ${cause.runIds.join(', ')}`] : []),
    `  ${cause.change}`,
  ].map((line) => safe(line, process.stdout))
}
