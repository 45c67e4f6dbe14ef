import type { Command } from 'commander'
import { ops } from '@windlass/shared/ops/index.ts'
import type { PendingInput } from '@windlass/shared/model/input.ts'
import { Failure } from '../failure.ts'
import { groupCommand, rowArgs, rowCommand } from '../from-table.ts'
import { textOf } from '../json-argument.ts'
import { answerSample, schemaText } from '../schema-text.ts'
import { does } from '../session.ts'
import { printTable } from '../table.ts'
import { cellTime, note, print, safe } from '../terminal.ts'
import { tellNextPage } from '../next-page.ts'

/** `inputs`: what runs ask people. */
export function addInputs(program: Command): void {
  const group = groupCommand(program, 'inputs')
  addList(group)
  addRespond(group)
}

function addList(group: Command): void {
  does(rowCommand(group, 'list', ops.inputs.list), async (session, positional, options) => {
    const answer = await session.client.inputs.list(await rowArgs(ops.inputs.list, positional, options))
    await session.answer(answer, async () => {
      const head = ['INPUT', 'RUN?', 'WORKFLOW', 'STATUS?', 'ASKED?', 'UNTIL?', 'ANSWER?', 'PROMPT']
      await printTable(head, answer.inputs.map(rowOf))
      const [first] = answer.inputs
      if (!first) note('No questions. `--status answered,timed_out,closed` lists the former ones.')
      else if (first.status === 'open') note(`Next: windlass inputs respond ${first.id} ${answerSample(first.schema)}`)
      tellNextPage(answer.nextCursor)
    })
  })
}

function rowOf(input: PendingInput): string[] {
  return [
    input.id,
    input.run.id,
    input.run.workflow.slug,
    input.status,
    cellTime(input.createdAt),
    cellTime(input.dueAt),
    answerText(input),
    promptText(input),
  ]
}

const PROMPT_SHOWN = 60

/** A line of a table; a pipe gets all of it. */
function promptText({ prompt }: PendingInput): string {
  if (!process.stdout.isTTY) return prompt
  const [first = '', ...more] = prompt.split('\n')
  const line = safe(first, process.stdout)
  return line.length > PROMPT_SHOWN || more.length > 0 ? `${line.slice(0, PROMPT_SHOWN)}…` : line
}

/** What may be answered, in the words of TypeScript. */
function answerText({ schema }: PendingInput): string {
  return schema === null ? 'any' : schemaText(schema)
}

const HELP = `
[answer] is JSON, @file, or - for standard input. Where the question takes a string, plain text serves as well:
  windlass inputs respond inp_… '{"approved":true}'
  windlass inputs respond inp_… 'looks good'
  windlass inputs respond inp_… -- -5`

function addRespond(group: Command): void {
  const command = group
    .command('respond')
    .description(ops.inputs.respond.summary)
    .argument('<input>')
    .argument('[answer]', 'the answer: JSON, @file, or - for standard input')
    .option('--answer-file <file>', 'a file that holds the answer')
    .addHelpText('after', HELP)
  does(command, async (session, [id = '', given], options) => {
    const text = await givenText(given, options['answerFile'])
    const { input: asked } = await session.client.inputs.get({ input: id })
    const { input } = await session.client.inputs.respond({ input: id, answer: answerOf(text, asked) })
    await session.answer({ input }, () => {
      print(`${input.id} is answered`)
      note(`Next: windlass logs -f ${input.run.id}`)
    })
  })
}

async function givenText(given: string | undefined, file: unknown): Promise<string> {
  const next = `windlass inputs respond <input> '{"approved":true}'`
  if (given !== undefined && typeof file === 'string')
    throw new Failure('Give the answer or --answer-file, not both.', next)
  if (typeof file === 'string') return (await textOf('--answer-file', `@${file}`)).text
  if (given === undefined) throw new Failure('The answer is missing.', next)
  return (await textOf('the answer', given)).text
}

/** JSON as it stands; other text as itself where a string is asked for, without the line break that ends a file. */
function answerOf(text: string, asked: PendingInput): unknown {
  const value = parsed(text)
  if (takesText(asked)) return typeof value?.json === 'string' ? value.json : text.replace(/\r?\n$/, '')
  if (value) return value.json
  const next =
    asked.schema === null
      ? `windlass inputs respond ${asked.id} '${JSON.stringify(text.slice(0, 40))}'`
      : `windlass inputs get ${asked.id} shows what it takes`
  throw new Failure(
    `The answer is not JSON, and the question takes ${answerText(asked)}. A string is JSON when it is quoted: '"…"'.`,
    next,
  )
}

function parsed(text: string): { json: unknown } | undefined {
  try {
    return { json: JSON.parse(text) as unknown }
  } catch {
    return undefined
  }
}

function takesText({ schema }: PendingInput): boolean {
  return typeof schema === 'object' && schema !== null && schema['type'] === 'string'
}
