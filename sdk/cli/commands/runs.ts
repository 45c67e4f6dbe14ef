import type { Command } from 'commander'
import { ops } from '@windlass/shared/ops/index.ts'
import type { RunEvent } from '@windlass/shared/model/event.ts'
import type { Run } from '@windlass/shared/model/run.ts'
import { followRun } from '../follow-run.ts'
import { groupCommand, rowArgs, rowCommand } from '../from-table.ts'
import { tellNextPage } from '../next-page.ts'
import { does } from '../session.ts'
import type { Session } from '../session.ts'
import { printFields, printTable } from '../table.ts'
import { cellTime, lengthText, note, print, timeText } from '../terminal.ts'
import { addBulk } from './run-bulk.ts'
import { addRunLogs, wholeLog } from './run-log.ts'
import { addWhy } from './run-why.ts'
import { channelsOf } from './run.ts'

export function addRuns(program: Command): void {
  const group = groupCommand(program, 'runs')
  addList(group)
  addGet(group)
  addRunLogs(group)
  addWhy(group)
  addChildren(group)
  addRetry(group)
  addBulk(group)
}

const HEAD = ['RUN', 'WORKFLOW', 'STATUS', 'CREATED', 'TOOK?', 'TRY?']

function addList(group: Command): void {
  does(rowCommand(group, 'list', ops.runs.list), async (session, positional, options) => {
    const answer = await session.client.runs.list(await rowArgs(ops.runs.list, positional, options))
    await session.answer(answer, async () => {
      await printTable(HEAD, answer.runs.map(rowOf))
      if (answer.runs.length === 0) note('No runs. Next: windlass run <workflow>')
      tellNextPage(answer.nextCursor)
    })
  })
}

function rowOf(run: Run): string[] {
  return [
    run.id,
    `${run.workflow.slug}@${run.workflow.version}`,
    run.blocked ? `${run.status} (blocked)` : run.status,
    cellTime(run.createdAt),
    tookText(run),
    String(run.attempt),
  ]
}

function tookText({ createdAt, finishedAt }: Run): string {
  return finishedAt === null ? '-' : lengthText(finishedAt - createdAt)
}

function addGet(group: Command): void {
  does(rowCommand(group, 'get', ops.runs.get), async (session, positional, options) => {
    const { run } = await session.client.runs.get(await rowArgs(ops.runs.get, positional, options))
    await session.answer({ run }, async () => printFields(fieldsOf(run, await attemptsBefore(session, run))))
  })
}

const MOST_ATTEMPTS = 3

/** How the attempts before this one ended, the last first. */
async function attemptsBefore(session: Session, { id, attempt }: Run): Promise<[string, string][]> {
  if (attempt === 1) return []
  const { events } = await wholeLog(session, { run: id, channels: ['lifecycle'] })
  const ended = events.filter(({ type }) => type === 'run.restarted').toReversed()
  const shown = ended.slice(0, MOST_ATTEMPTS).map(attemptRow)
  const more = ended.length - shown.length
  return more === 0 ? shown : [...shown, ['', `and ${more} earlier ones. Next: windlass logs ${id}`]]
}

function attemptRow({ at, data }: RunEvent): [string, string] {
  const { lostAttempt, reason } = data
  const { code, message } = (data['error'] ?? {}) as { code?: unknown; message?: unknown }
  const why = [reason, code, message].filter((part) => typeof part === 'string').join(': ')
  return [`attempt ${String(lostAttempt)}`, `at ${timeText(at)}: ${why}`]
}

function fieldsOf(run: Run, before: [string, string][]): [string, string][] {
  const fields: [string, string | null | undefined][] = [
    ['run', run.id],
    ['workflow', `${run.workflow.slug}, version ${run.workflow.version}`],
    ['status', run.status],
    ['waits for', waitText(run)],
    ['blocked', run.blocked?.message],
    ['error', run.error && `${run.error.code}: ${run.error.message}`],
    ['trigger', triggerText(run.trigger)],
    ['environment', run.environment],
    ['tags', run.tags.join(', ')],
    ['attempt', String(run.attempt)],
    ['lost', run.lost && `attempt ${run.lost.attempt}, at ${timeText(run.lost.at)}: ${run.lost.reason}`],
    ...before,
    ['parent', run.parentRunId],
    ['retry of', run.retryOf],
    ['pool', run.pool.name],
    ['runner', run.runner?.name],
    ['created', timeText(run.createdAt)],
    ['started', timeText(run.startedAt)],
    ['finished', timeText(run.finishedAt)],
    ['deleted', run.deletedAt === null ? null : timeText(run.deletedAt)],
    ['computing', lengthText(run.computeMs)],
  ]
  return fields.filter((field): field is [string, string] => typeof field[1] === 'string' && field[1] !== '')
}

const WAITS = { sleep: 'its sleep', input: 'an answer', child: 'a run that it has called' } as const

function waitText({ id, waiting }: Run): string | null {
  if (!waiting) return null
  const due = waiting.until === undefined ? '' : `; its next timer is due at ${timeText(waiting.until)}`
  return `${WAITS[waiting.for]}, since ${timeText(waiting.since)}${due}. Next: windlass runs why ${id}`
}

function addChildren(group: Command): void {
  does(rowCommand(group, 'children', ops.runs.children), async (session, positional, options) => {
    const answer = await session.client.runs.children(await rowArgs(ops.runs.children, positional, options))
    await session.answer(answer, async () => {
      await printTable(HEAD, answer.runs.map(rowOf))
      if (answer.runs.length === 0) note('It has called no runs.')
      tellNextPage(answer.nextCursor)
    })
  })
}

function addRetry(group: Command): void {
  const command = rowCommand(group, 'retry', ops.runs.retry).option('-f, --follow', 'follow the new run to its end')
  does(command, async (session, positional, options) => {
    const { run } = await session.client.runs.retry(await rowArgs(ops.runs.retry, positional, options))
    if (options['follow'] === true) return followRun(session, run, { channels: channelsOf(undefined) })
    await tellRetried(session, run)
    return undefined
  })
}

async function tellRetried(session: Session, run: Run): Promise<void> {
  await session.answer({ run }, () => {
    print(run.id)
    note(`Next: windlass logs -f ${run.id}`)
  })
}

/** Of a run of a schedule also which, and for which tick. */
function triggerText({ kind, id, at, catchUp, manual }: Run['trigger']): string {
  if (kind !== 'schedule' || id === undefined || at === undefined) return kind
  if (manual) return `schedule ${id}, by hand`
  return `schedule ${id}, its tick of ${timeText(at)}${catchUp ? ', which had been missed' : ''}`
}
