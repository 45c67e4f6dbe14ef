import { columnsOf } from 'windlass/cli/from-table.ts'
import { createProgram } from 'windlass/cli/program.ts'
import { code, fence, headed, table } from './markdown.ts'

type Command = ReturnType<typeof createProgram>
type Help = ReturnType<Command['createHelp']>
type Option = Command['options'][number]

const ABOUT = 'Every command with its arguments and flags. `windlass <command> --help` says the same in a terminal.'

/** Every command that does something, with the words by which it is typed. */
export function leafCommands(program: Command = createProgram()): { path: string; command: Command }[] {
  const help = program.createHelp()
  const walk = (command: Command, path: readonly string[]): { path: string; command: Command }[] => {
    const inner = help.visibleCommands(command).filter((each) => each.name() !== 'help')
    const below = inner.flatMap((each) => walk(each, [...path, each.name()]))
    return inner.length > 0 ? below : [{ path: path.join(' '), command }]
  }
  return walk(program, [program.name()])
}

/** Everything that can be typed, by long names and short ones, with the words under which it stands in the reference. */
export function commandPaths(program: Command = createProgram()): ReadonlyMap<string, string> {
  const path = new Map([[program.name(), program.name()]])
  const walk = (command: Command, before: readonly string[], listed: string): void => {
    for (const each of command.commands) {
      const own = `${listed} ${each.name()}`
      const typed = [each.name(), ...each.aliases()].flatMap((name) => before.map((path) => `${path} ${name}`))
      for (const one of typed) path.set(one, own)
      walk(each, typed, own)
    }
  }
  walk(program, [program.name()], program.name())
  return path
}

export function cliReference(): string {
  const program = createProgram()
  const help = program.createHelp()
  const leaves = leafCommands(program)
  const index = table(
    ['command', 'what it does'],
    leaves.map(({ path, command }) => [code(path), command.description()]),
  )
  const everywhere = `## Everywhere\n\n${flags(help, help.visibleOptions(program))}\n\n${fence('', textBehindHelp(program))}`
  return headed('CLI', ABOUT, index, everywhere, ...leaves.map((leaf) => section(help, leaf)))
}

/** What the help says after the lists of commands and flags. */
function textBehindHelp(program: Command): string {
  let text = ''
  program.configureOutput({ writeOut: (more) => (text += more) }).outputHelp()
  return text.slice(program.helpInformation().length).trim()
}

function section(help: Help, { path, command }: { path: string; command: Command }): string {
  const usage = `${path} ${command.usage()}`.trim()
  const parts = [`## ${path}`, fence('sh', usage), command.description()]
  const given = help
    .visibleArguments(command)
    .map((argument) => [code(help.argumentTerm(argument)), help.argumentDescription(argument)])
  if (given.some(([, text]) => text !== '')) parts.push(table(['argument', 'what it is'], given))
  const options = help.visibleOptions(command).filter((option) => option.long !== '--help')
  if (options.length > 0) parts.push(flags(help, options))
  const columns = columnsOf(command)
  if (columns.length > 0) parts.push(`Columns: ${columns.map(code).join(', ')}.`)
  return parts.join('\n\n')
}

function flags(help: Help, options: readonly Option[]): string {
  const rows = options.map((option) => [code(help.optionTerm(option)), help.optionDescription(option)])
  return table(['flag', 'what it does'], rows)
}
