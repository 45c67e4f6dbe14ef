import type { Command } from 'commander'
import { Option } from 'commander'
import { ops } from '@windlass/shared/ops/index.ts'
import type { AnyOp } from '@windlass/shared/ops/op.ts'
import { decodeStrings } from '@windlass/shared/ops/place.ts'
import type { Args, Client } from '../client/index.ts'
import { Failure } from './failure.ts'
import { flagFields, kebab, positionals } from './fields.ts'
import type { Field } from './fields.ts'
import { jsonArgument } from './json-argument.ts'
import { does } from './session.ts'
import { print } from './terminal.ts'

const GROUPS: Record<string, string> = {
  workflows: 'What is deployed.',
  runs: 'What is executed: list, read, follow, explain, cancel, retry.',
  inputs: 'What runs ask people: list, answer.',
  pools: 'Groups of machines that execute runs.',
  runners: 'The machines themselves.',
  service: 'The service: health and description.',
}

/** The command `windlass <group>`, made when it is first asked for. */
export function groupCommand(program: Command, name: string): Command {
  const known = program.commands.find((command) => command.name() === name)
  return known ?? program.command(name).description(GROUPS[name] ?? `Operations on ${name}.`)
}

/** A command with the arguments, flags and help of a row. */
export function rowCommand(group: Command, name: string, row: object): Command {
  const plain = row as AnyOp
  const command = group.command(name).description(plain.summary)
  for (const argument of positionals(plain)) command.argument(`<${kebab(argument)}>`)
  for (const field of flagFields(plain)) command.addOption(optionOf(field))
  return command
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
    else strings[field.name] = [given].flat().join(',')
  }
  const args = { ...decodeStrings(plain.input, strings), ...jsons }
  refuseText(plain, args)
  return args as Args<R>
}

/** Adds every operation that a caller may use and that no hand-made command covers. */
export function addFromTable(program: Command): void {
  const { runnerSurface: _, ...groups } = ops
  for (const [group, rows] of Object.entries(groups)) {
    const parent = groupCommand(program, group)
    for (const [name, row] of Object.entries(rows) as unknown as [string, AnyOp][]) {
      if (row.wire !== undefined || COVERED.has(row.id)) continue
      if (parent.commands.some((command) => command.name() === kebab(name))) continue
      addDerived(parent, group, name, row)
    }
  }
}

/** Rows whose hand-made command has another name than the row. */
const COVERED = new Set([
  'workflows.create',
  'workflows.update',
  'workflows.listVersions',
  'runs.trigger',
  'pools.createToken',
])

function addDerived(parent: Command, group: string, name: string, row: AnyOp): void {
  const command = rowCommand(parent, kebab(name), row)
  does(command, async (session, positional, options) => {
    const args = await rowArgs(row, positional, options)
    const call = operation(session.client, group, name)
    const answer = await call(args)
    await session.answer(answer ?? null, () => print(JSON.stringify(answer ?? null, null, 2)))
  })
}

function operation(client: Client, group: string, name: string) {
  const groups = client as unknown as Record<string, Record<string, (args: unknown) => Promise<unknown>>>
  const call = groups[group]?.[name]
  if (!call) throw new Error(`the client has no ${group}.${name}`)
  return call
}

function optionOf(field: Field): Option {
  const { kind, flag, isRequired, choices } = field
  const value = kind === 'boolean' ? '' : kind === 'json' ? ' <json>' : kind === 'list' ? ' <list>' : ` <${kind}>`
  const more =
    kind === 'json' ? 'JSON, @file or - for standard input' : kind === 'list' ? 'comma-separated, or given again' : ''
  const of = choices && kind === 'list' ? `of ${choices.join(', ')}` : ''
  const option = new Option(`--${flag}${value}`, [field.description, more, of].filter(Boolean).join('; '))
  if (kind === 'list') option.argParser((text: string, before?: string[]) => [...(before ?? []), ...text.split(',')])
  else if (choices) option.choices(choices)
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
