import type { Command } from 'commander'
import { Option } from 'commander'
import { FIELDS } from '@windlass/shared/ops/fields.ts'
import { groups, ops } from '@windlass/shared/ops/index.ts'
import type { Ops } from '@windlass/shared/ops/index.ts'
import type { AnyOp } from '@windlass/shared/ops/op.ts'
import { decodeStrings } from '@windlass/shared/ops/fill-route.ts'
import type { Args, Client } from '../client/index.ts'
import { momentFlag } from './duration-flag.ts'
import { Failure } from './failure.ts'
import { runnerId } from './fleet/names.ts'
import { flagFields, kebab, positionals } from './fields.ts'
import type { Field } from './fields.ts'
import { jsonArgument } from './json-argument.ts'
import { printAnswer } from './row-answer.ts'
import { does } from './session.ts'

/** The command `windlass <group>`, made when it is first asked for. */
export function groupCommand(program: Command, name: keyof Ops): Command {
  const { command = '', short = name } = groups[name]
  const known = program.commands.find((each) => each.name() === short)
  if (known) return known
  const made = program.command(short).description(command)
  return short === name ? made : made.alias(name)
}

/** A command with the arguments, flags and help of a row, and an example unless it or the caller has better ones. */
export function rowCommand(group: Command, name: string, row: object, help?: string): Command {
  const plain = row as AnyOp
  const command = group.command(name).description(plain.summary)
  for (const argument of positionals(plain)) command.argument(`<${kebab(argument)}>`, plain.cli?.args?.[argument])
  for (const field of flagFields(plain)) command.addOption(optionOf(field))
  return command.addHelpText('after', help ?? `\n${helpOf(group, name, plain)}`)
}

function helpOf(group: Command, name: string, row: AnyOp): string {
  return row.cli?.help?.join('\n') ?? `  ${exampleOf(group, name, row)}`
}

function exampleOf(group: Command, name: string, row: AnyOp): string {
  const given = positionals(row).map((argument) => FIELDS[argument]?.sample ?? `<${kebab(argument)}>`)
  const needed = flagFields(row).filter((field) => field.isRequired)
  const flags = needed.map(({ flag, name: field }) => `--${flag} ${FIELDS[field]?.sample ?? '…'}`)
  return ['windlass', group.name(), name, ...given, ...flags].join(' ')
}

/** What was typed, as the row's arguments: the positional ones first, then flags, decoded by the schema. */
export async function rowArgs<R>(row: R, positional: string[], options: Record<string, unknown>): Promise<Args<R>> {
  const plain = row as AnyOp
  const strings = Object.fromEntries(positionals(plain).map((name, index) => [name, positional[index] ?? '']))
  const jsons: Record<string, unknown> = {}
  for (const field of flagFields(plain)) {
    const given = options[camel(field.flag)] as string | string[] | true | undefined
    if (given === undefined) continue
    if (field.kind === 'json') jsons[field.name] = await jsonArgument(`--${field.flag}`, String(given))
    else if (field.kind === 'boolean') jsons[field.name] = given
    else if (field.kind === 'moment')
      jsons[field.name] = momentFlag(`--${field.flag}`, String(given), `… --${field.flag} 2d`)
    else strings[field.name] = [given].flat().join(',')
  }
  const args = { ...decodeStrings(plain.input, strings), ...jsons }
  refuseText(plain, args)
  return args as Args<R>
}

/**
 * Adds every operation that a caller may use and that no hand-made command covers. Lists stand first, then what shows
 * one thing, then the others in the order of their rows.
 */
export function addFromTable(program: Command): void {
  for (const group of Object.keys(ops) as (keyof Ops)[]) {
    if (groups[group].command === undefined) continue
    const parent = groupCommand(program, group)
    const rows = Object.entries(ops[group]) as unknown as [string, AnyOp][]
    const names = rows.map(([key, row]) => commandName(key, row))
    for (const [index, [key, row]] of rows.entries()) {
      const name = names[index]
      if (row.wire !== undefined || name === undefined) continue
      if (!parent.commands.some((command) => command.name() === name)) addRendered(parent, { group, key, name })
    }
    inOrder(parent, names)
  }
}

/** Nothing where it stands outside of its group, as `deploy` does. */
function commandName(key: string, { command }: AnyOp): string | undefined {
  return command === undefined ? kebab(key) : command.split(' ')[1]
}

/** What has no row follows. */
function inOrder(parent: Command, names: (string | undefined)[]): void {
  const order = ['list', 'get', ...names]
  const rank = (command: Command) => (names.includes(command.name()) ? order.indexOf(command.name()) : order.length)
  const commands = parent.commands as Command[]
  commands.sort((a, b) => rank(a) - rank(b))
}

/** Those that their row alone makes. */
const rendered = new WeakMap<Command, AnyOp>()

export function isRendered(command: Command): boolean {
  return rendered.has(command)
}

/** Of a list: the heads of its columns, in the order in which a pipe gets them. */
export function columnsOf(command: Command): string[] {
  return Object.keys(rendered.get(command)?.cli?.table?.columns ?? {}).map((head) => head.replace(/\?$/, ''))
}

interface Rendered {
  group: keyof Ops
  /** Of the row in its group. */
  key: string
  name: string
}

/** A command that calls a row and shows its answer as the row says. */
function addRendered(parent: Command, { group, key, name }: Rendered): void {
  const row = (ops[group] as unknown as Record<string, AnyOp>)[key]!
  const command = rowCommand(parent, name, row)
  rendered.set(command, row)
  does(command, async (session, positional, options) => {
    const typed: Record<string, unknown> = await rowArgs(row, positional, options)
    const call = operation(session.client, group, key)
    const answer = await call(await identified(session.client, typed))
    // 204 has no body; a script gets an object all the same.
    await session.answer(answer ?? {}, () => printAnswer(row.cli, answer, typed))
  })
}

/** People know a runner by its name, and the operations by its id alone. */
async function identified(client: Client, args: Record<string, unknown>): Promise<Record<string, unknown>> {
  const { runner } = args
  return typeof runner === 'string' ? { ...args, runner: await runnerId(client, runner) } : args
}

function operation(client: Client, group: string, name: string) {
  const groups = client as unknown as Record<string, Record<string, (args: unknown) => Promise<unknown>>>
  const call = groups[group]?.[name]
  if (!call) throw new Error(`the client has no ${group}.${name}`)
  return call
}

const VALUES = { text: 'text', number: 'number', moment: 'when', list: 'list', json: 'json' } as const

const SHORT: Record<string, string> = { environment: '-e, ', input: '-i, ' }

function optionOf(field: Field): Option {
  const { kind, flag, isRequired, choices } = field
  const value = kind === 'boolean' ? '' : ` <${VALUES[kind]}>`
  const more =
    kind === 'json' ? 'JSON, @file or - for standard input' : kind === 'list' ? 'comma-separated, or given again' : ''
  const description = more === '' ? field.description : field.description.replace(/\.$/, '')
  const option = new Option(`${SHORT[flag] ?? ''}--${flag}${value}`, [description, more].filter(Boolean).join('; '))
  if (kind === 'list') {
    option.argParser((text: string, before?: string[]) => [...(before ?? []), ...text.split(',')])
    // For help and completion; a list of several is for the service to judge.
    option.argChoices = choices
  } else if (choices) option.choices(choices)
  return option.makeOptionMandatory(isRequired)
}

function camel(flag: string): string {
  return flag.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase())
}

/** A number that is none is refused here, by its flag; all else is for the service to judge. */
function refuseText(row: AnyOp, args: Record<string, unknown>): void {
  for (const { name, flag, kind } of flagFields(row)) {
    if (kind !== 'number' || typeof args[name] !== 'string') continue
    throw new Failure(`--${flag} takes a number, not \`${args[name]}\`.`, `--${flag} 10`)
  }
}
