import type { Command } from 'commander'
import { DEFAULT_CHANNELS } from '@windlass/shared/model/event.ts'
import type { Channel } from '@windlass/shared/model/event.ts'
import { lengthFlag, timerFlag, wholeNumber } from '../duration-flag.ts'
import { EXIT_TEXT } from '../exit-codes.ts'
import { Failure } from '../failure.ts'
import { followRun } from '../follow-run.ts'
import { jsonArgument } from '../json-argument.ts'
import { during } from '../progress.ts'
import { runBatch } from '../run-batch.ts'
import { does, type Session } from '../session.ts'
import { print } from '../terminal.ts'

interface RunFlags {
  input?: string
  batch?: string
  environment?: string
  tag?: string[]
  priority?: string
  delay?: string
  idempotencyKey?: string
  workflowVersion?: string
  follow: boolean
  logs?: boolean
  timeout?: string
}

const HELP = `
  windlass run hello --input '{"name":"Ada"}'
  windlass run hello --input @input.json --environment staging --timeout 10m
  windlass run hello --batch runs.jsonl          # lines such as {"input":{"name":"Ada"},"tags":["first"]}
Events go to standard error, the returned value to standard output: windlass run hello > answer.json
With --json standard output has each event and at last the run, one JSON document per line.
Ctrl-C stops following and leaves the run alone; what to type next is printed.
${EXIT_TEXT}`

export function addRun(program: Command): void {
  const command = program
    .command('run')
    .description('Start a run of a workflow and follow it to its end.')
    .argument('<workflow>', 'slug or id')
    .option('-i, --input <json>', 'the input: JSON, @file, or - for standard input')
    .option('--batch <file>', 'start a run for each line of a file, or of - for standard input; does not follow them')
    .option('-e, --environment <name>', 'the environment whose variables the run gets')
    .option('--tag <tag>', 'a tag for the run; may be given again', (tag: string, before?: string[]) => [
      ...(before ?? []),
      tag,
    ])
    .option('--priority <number>', 'from -100 to 100, higher goes first')
    .option('--delay <duration>', 'enter the queue after this long, such as 90s or 2h')
    .option(
      '--idempotency-key <key>',
      'start it at most once in 24 hours: the same key and request answer the first run',
    )
    .option('--workflow-version <number>', 'a version other than the current one')
    .option('--no-follow', 'print the run as it is queued and leave')
    .option('--logs', 'show what the program prints; the default on a terminal')
    .option('--no-logs', 'do not')
    .option('--timeout <duration>', 'stop following after this long, such as 90s or 10m; the run goes on')
    .addHelpText('after', HELP)
  does(command, async (session, [workflow = ''], options) => {
    const flags = options as unknown as RunFlags
    if (flags.batch !== undefined) return startAll(session, workflow, { ...flags, batch: flags.batch })
    const timeoutMs =
      flags.timeout === undefined ? undefined : timerFlag('--timeout', flags.timeout, 'run … --timeout 10m')
    const started = session.client.runs.trigger({ workflow, ...(await bodyOf(flags)) })
    const { run } = await during(session.progress, `starting ${workflow}`, started)
    if (flags.follow) {
      if (!session.isJson) session.progress.note(`${run.id} of ${run.workflow.slug}, version ${run.workflow.version}`)
      return followRun(session, run, { channels: channelsOf(flags.logs), timeoutMs })
    }
    await session.answer({ run }, () => print(run.id))
    return undefined
  })
}

/** The flags hold for every line that does not say otherwise. */
async function startAll(session: Session, workflow: string, flags: RunFlags & { batch: string }): Promise<number> {
  for (const [flag, given] of [
    ['--input', flags.input],
    ['--idempotency-key', flags.idempotencyKey],
  ])
    if (given !== undefined)
      throw new Failure(
        `${flag} is for one run, and --batch has one for each line.`,
        'in a line: {"input":{"name":"Ada"},"idempotencyKey":"ada-1"}',
      )
  return runBatch(session, workflow, { file: flags.batch, common: await bodyOf(flags) })
}

async function bodyOf(flags: RunFlags) {
  return {
    ...(flags.input !== undefined && { input: await jsonArgument('--input', flags.input) }),
    ...(flags.environment !== undefined && { environment: flags.environment }),
    ...(flags.tag && { tags: flags.tag }),
    ...(flags.priority !== undefined && { priority: wholeNumber('--priority', flags.priority, 'run … --priority 1') }),
    ...(flags.delay !== undefined && { delayMs: lengthFlag('--delay', flags.delay, 'run … --delay 10m') }),
    ...(flags.idempotencyKey !== undefined && { idempotencyKey: flags.idempotencyKey }),
    ...(flags.workflowVersion !== undefined && {
      version: wholeNumber('--workflow-version', flags.workflowVersion, 'run … --workflow-version 1'),
    }),
  }
}

/** On a terminal a person looks on; a script that wants the program's chatter says so. */
export function channelsOf(logs: boolean | undefined): Channel[] {
  return (logs ?? process.stderr.isTTY) ? [...DEFAULT_CHANNELS, 'log'] : [...DEFAULT_CHANNELS]
}
