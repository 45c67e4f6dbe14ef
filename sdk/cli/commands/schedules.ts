import type { Command } from 'commander'
import { ops } from '@windlass/shared/ops/index.ts'
import { lengthFlag } from '../duration-flag.ts'
import { Failure } from '../failure.ts'
import { groupCommand } from '../from-table.ts'
import { jsonArgument } from '../json-argument.ts'
import { printAnswer } from '../row-answer.ts'
import { does } from '../session.ts'

/** `schedules create`, `update`, `pause` and `resume`: lengths and times as people write them, and words for a flag. */
export function addSchedules(program: Command): void {
  const group = groupCommand(program, 'schedules')
  addCreate(group)
  addUpdate(group)
  addToggle(group, 'pause', 'Pause a schedule: what ticks meanwhile is skipped.', false)
  addToggle(group, 'resume', 'Let a paused schedule go on, from now.', true)
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

/** What `schedules get` shows, whatever was done to it. */
const SHOWN = ops.schedules.get.cli

function addCreate(group: Command): void {
  const command = group.command('create').description(ops.schedules.create.summary)
  addContentFlags(command.argument('<workflow>', 'slug or id of the workflow'))
    .option('--paused', 'it starts runs only once it is resumed')
    .option(
      '--idempotency-key <key>',
      'create it at most once in 24 hours: the same key and request answer the first schedule',
    )
    .addHelpText('after', CREATE_HELP)
  does(command, async (session, [workflow = ''], options) => {
    const flags = options as unknown as ContentFlags & { paused?: boolean; idempotencyKey?: string }
    const content = await contentOf(flags, 'schedules create report')
    const key = flags.idempotencyKey === undefined ? {} : { idempotencyKey: flags.idempotencyKey }
    const enabled = flags.paused !== true
    const answer = await session.client.schedules.create({ workflow, ...content, enabled, ...key })
    await session.answer(answer, () => printAnswer(SHOWN, answer, {}))
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
    await session.answer(answer, () => printAnswer(SHOWN, answer, {}))
  })
}

function addToggle(group: Command, name: 'pause' | 'resume', about: string, enabled: boolean): void {
  const command = group.command(name).description(about).argument('<schedule>', 'id of the schedule')
  command.addHelpText('after', `\n  windlass schedules ${name} sch_…`)
  does(command, async (session, [schedule = '']) => {
    const answer = await session.client.schedules.update({ schedule, enabled })
    await session.answer(answer, () => printAnswer(SHOWN, answer, {}))
  })
}
