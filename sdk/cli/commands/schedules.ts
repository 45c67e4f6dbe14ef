import type { Command } from 'commander'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Schedule, ScheduleGap, ScheduleWhy } from '@windlass/shared/model/schedule.ts'
import { lengthFlag } from '../duration-flag.ts'
import { Failure } from '../failure.ts'
import { groupCommand, rowArgs, rowCommand } from '../from-table.ts'
import { jsonArgument } from '../json-argument.ts'
import { tellNextPage } from '../next-page.ts'
import { does } from '../session.ts'
import { printFields, printTable } from '../table.ts'
import { cellTime, json, lengthText, note, print, safe, timeText } from '../terminal.ts'

/** `schedules`: what starts runs by itself. */
export function addSchedules(program: Command): void {
  const group = groupCommand(program, 'schedules')
  addCreate(group)
  addList(group)
  addGet(group)
  addUpdate(group)
  addToggle(group, 'pause', 'Pause a schedule: what ticks meanwhile is skipped.', false)
  addToggle(group, 'resume', 'Let a paused schedule go on, from now.', true)
  addRun(group)
  addTicks(group)
  addWhy(group)
  addDelete(group)
}

interface ContentFlags {
  name?: string
  cron?: string
  timezone?: string
  rate?: string
  at?: string
  anchorAt?: string
  environment?: string
  input?: string
  jitter?: string
  catchUp?: 'skip' | 'last' | 'all'
  catchUpWindow?: string
  overlap?: 'allow' | 'skip' | 'cancel'
}

function addContentFlags(command: Command): Command {
  return command
    .option('--cron <fields>', 'five fields: minute, hour, day of month, month, day of week')
    .option('--timezone <zone>', 'of --cron, such as Europe/Zurich; UTC by default')
    .option('--rate <duration>', 'how often, such as 15m or 6h')
    .option('--at <time>', 'once, such as 2027-01-31T09:00:00Z, or milliseconds since the Unix epoch')
    .option('--anchor-at <time>', 'ticks of --rate lie whole steps behind this time')
    .option('--name <name>', 'what people read')
    .option('-e, --environment <name>', 'whose variables and secrets its runs get')
    .option('-i, --input <json>', 'the input of its runs: JSON, @file, or - for standard input')
    .option('--jitter <duration>', 'by how much each tick may be put off, at most 1h')
    .option('--catch-up <rule>', 'what fires of ticks that were missed: skip, last or all')
    .option('--catch-up-window <duration>', 'what was missed longer ago is not caught up, at most 7d')
    .option('--overlap <rule>', 'while a run of it is unfinished a tick does: allow, skip or cancel')
}

async function contentOf(flags: ContentFlags, command: string) {
  const length = (flag: string, text: string | undefined) =>
    text === undefined ? undefined : lengthFlag(flag, text, `${command} ${flag} 30s`)
  const { cron, timezone, rate, name, environment, catchUp, overlap } = flags
  const given = {
    cron,
    timezone,
    rate,
    name,
    environment,
    catchUp,
    overlap,
    at: momentOf(flags.at),
    anchorAt: momentOf(flags.anchorAt),
    jitterMs: length('--jitter', flags.jitter),
    catchUpWindowMs: length('--catch-up-window', flags.catchUpWindow),
    input: flags.input === undefined ? undefined : await jsonArgument('--input', flags.input),
  }
  return Object.fromEntries(Object.entries(given).filter(([, value]) => value !== undefined)) as typeof given
}

const momentOf = (text: string | undefined) => (text !== undefined && /^\d+$/.test(text) ? Number(text) : text)

const CREATE_HELP = `
Exactly one of --cron, --rate and --at. The next five times are printed: check them.
  windlass schedules create report --cron '0 9 * * 1-5' --timezone Europe/Zurich
  windlass schedules create sync --rate 15m --overlap skip --environment staging`

function addCreate(group: Command): void {
  const command = group.command('create').description(ops.schedules.create.summary)
  addContentFlags(command.argument('<workflow>', 'slug or id of the workflow'))
    .option('--paused', 'it starts runs only once it is resumed')
    .addHelpText('after', CREATE_HELP)
  does(command, async (session, [workflow = ''], options) => {
    const flags = options as unknown as ContentFlags & { paused?: boolean }
    const content = await contentOf(flags, 'schedules create report')
    const answer = await session.client.schedules.create({ workflow, ...content, enabled: flags.paused !== true })
    await session.answer(answer, () => tell(answer.schedule))
  })
}

function tell(schedule: Schedule): void {
  const { rateMs, environment, lastRun, nextTimes } = schedule
  const shown = (text: string) => safe(text, process.stdout)
  printFields([
    ['schedule', schedule.id],
    ...(schedule.name === null ? [] : [['name', shown(schedule.name)] as [string, string]]),
    ['workflow', schedule.workflow.slug],
    ['when', shown(schedule.words)],
    ['state', stateOf(schedule)],
    ['made by', schedule.source === 'descriptor' ? 'its descriptor' : schedule.createdBy],
    ['environment', environment ?? '-'],
    ['input', shown(json(schedule.input).slice(0, 200))],
    ['overlap', schedule.overlap],
    ['catch up', `${schedule.catchUp}, within ${lengthText(schedule.catchUpWindowMs)}`],
    ['jitter', lengthText(schedule.jitterMs)],
    ...(rateMs === undefined ? [] : [['anchor', timeText(schedule.anchorAt ?? null)] as [string, string]]),
    ['last run', lastRun ? `${lastRun.id} (${lastRun.status}), of ${timeText(lastRun.at)}` : '-'],
  ])
  for (const at of nextTimes) print(`next        ${timeText(at)}`)
  if (nextTimes.length === 0) note(`It starts no run: windlass schedules why ${schedule.id}`)
}

function stateOf({ enabled, endedAt, nextAt }: Schedule): string {
  if (endedAt !== null) return 'ended'
  if (!enabled) return 'paused'
  return nextAt === null ? 'stopped' : 'ticking'
}

function addList(group: Command): void {
  const help = '\n  windlass schedules list\n  windlass schedules list --workflow report'
  does(rowCommand(group, 'list', ops.schedules.list, help), async (session, positional, options) => {
    const answer = await session.client.schedules.list(await rowArgs(ops.schedules.list, positional, options))
    await session.answer(answer, async () => {
      const rows = answer.schedules.map((each) => [
        each.id,
        each.workflow.slug,
        stateOf(each),
        cellTime(each.nextAt),
        each.lastRun?.status ?? '-',
        each.name ?? '-',
        each.words,
      ])
      await printTable(['SCHEDULE', 'WORKFLOW', 'STATE', 'NEXT', 'LAST RUN?', 'NAME?', 'WHEN'], rows)
      if (rows.length === 0) note('No schedules. Next: windlass schedules create <workflow> --rate 1h')
      tellNextPage(answer.nextCursor)
    })
  })
}

function addGet(group: Command): void {
  does(rowCommand(group, 'get', ops.schedules.get), async (session, positional, options) => {
    const answer = await session.client.schedules.get(await rowArgs(ops.schedules.get, positional, options))
    await session.answer(answer, () => tell(answer.schedule))
  })
}

const UPDATE_HELP = `
What is not given stays. The next tick is found from now on. One of a descriptor is changed there.
  windlass schedules update sch_… --cron '30 9 * * 1-5'
  windlass schedules update sch_… --overlap skip --jitter 5m`

function addUpdate(group: Command): void {
  const command = group.command('update').description('Change a schedule.')
  addContentFlags(command.argument('<schedule>', 'id of the schedule')).addHelpText('after', UPDATE_HELP)
  does(command, async (session, [schedule = ''], options) => {
    const content = await contentOf(options, 'schedules update sch_…')
    if (Object.keys(content).length === 0)
      throw new Failure('Nothing was said that is to change.', `windlass schedules update ${schedule} --overlap skip`)
    const answer = await session.client.schedules.update({ schedule, ...content })
    await session.answer(answer, () => tell(answer.schedule))
  })
}

function addToggle(group: Command, name: 'pause' | 'resume', about: string, enabled: boolean): void {
  const command = group.command(name).description(about).argument('<schedule>', 'id of the schedule')
  command.addHelpText('after', `\n  windlass schedules ${name} sch_…`)
  does(command, async (session, [schedule = '']) => {
    const answer = await session.client.schedules.update({ schedule, enabled })
    await session.answer(answer, () => tell(answer.schedule))
  })
}

function addRun(group: Command): void {
  const command = group.command('run').description(ops.schedules.run.summary)
  command
    .argument('<schedule>', 'id of the schedule')
    .option('-i, --input <json>', 'in place of its input: JSON, @file, or - for standard input')
    .addHelpText('after', '\n  windlass schedules run sch_…')
  does(command, async (session, [schedule = ''], options) => {
    const given = options['input'] as string | undefined
    const input = given === undefined ? {} : { input: await jsonArgument('--input', given) }
    const answer = await session.client.schedules.run({ schedule, ...input })
    await session.answer(answer, () => {
      print(answer.run.id)
      note(`Next: windlass logs -f ${answer.run.id}`)
    })
  })
}

function addTicks(group: Command): void {
  const help = `
Ticks that have fired are runs: windlass runs list --trigger sch_…
  windlass schedules ticks sch_…`
  does(rowCommand(group, 'ticks', ops.schedules.ticks, help), async (session, positional, options) => {
    const answer = await session.client.schedules.ticks(await rowArgs(ops.schedules.ticks, positional, options))
    await session.answer(answer, async () => {
      await printTable(['FROM', 'TO', 'TICKS', 'OUTCOME', 'REASON', 'WHY'], answer.ticks.map(gapCells))
      if (answer.ticks.length === 0) note('No tick was skipped or missed.')
      tellNextPage(answer.nextCursor)
    })
  })
}

function gapCells({ from, to, count, outcome, reason, message }: ScheduleGap): string[] {
  return [cellTime(from), cellTime(to), String(count), outcome, reason, message]
}

function addWhy(group: Command): void {
  does(rowCommand(group, 'why', ops.schedules.why), async (session, positional, options) => {
    const answer = await session.client.schedules.why(await rowArgs(ops.schedules.why, positional, options))
    await session.answer(answer, () => tellWhy(answer.why))
  })
}

function tellWhy({ code, message, change, since, last }: ScheduleWhy): void {
  print(safe(`${code}: ${message}`, process.stdout))
  if (since !== null) print(`Since ${timeText(since)}.`)
  print(safe(change, process.stdout))
  if (last) print(safe(`Last ${last.outcome}: ${last.message} (${timeText(last.to)})`, process.stdout))
}

function addDelete(group: Command): void {
  does(rowCommand(group, 'delete', ops.schedules.delete), async (session, positional, options) => {
    const args = await rowArgs(ops.schedules.delete, positional, options)
    await session.client.schedules.delete(args)
    await session.answer({}, () => print(`${args.schedule} is deleted; runs that it has started go on`))
  })
}
