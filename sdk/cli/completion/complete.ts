import { RootCommand } from '@bomb.sh/tab'
import type { Command as Completed, Complete } from '@bomb.sh/tab'
import type { Argument, Command, Option } from 'commander'
import { bashScript } from './bash-script.ts'
import { isFindable, findNames } from './find-names.ts'
import type { Findable, FoundName } from './find-names.ts'
import type { GlobalFlags } from '../settings.ts'

type Shell = 'bash' | 'zsh' | 'fish'

/** What the shell is to do when nothing of ours fits: offer files, or nothing. */
const FILES = ':0'
const NO_FILES = ':4'

export function printScript(shell: Shell): void {
  const script = captured(() => new RootCommand().setup('windlass', 'windlass', shell))
  process.stdout.write(shell === 'bash' ? bashScript(script) : script)
}

/** Prints what could stand next, a line each with its description, and at last what else the shell may offer. */
export async function complete(program: Command, args: string[]): Promise<void> {
  const wanted = new Set<Findable | 'file'>()
  // First to learn what is asked for, and then, if it is names that only the service knows, with those.
  let text = suggestions(program, args, (kind) => void wanted.add(kind))
  const [kind] = [...wanted].filter(isFindable)
  if (kind !== undefined) {
    const names = await findNames(kind, flagsIn(program, args))
    text = suggestions(program, args, (asked, say) => asked === kind && names.forEach((one) => tell(one, say)))
  }
  process.stdout.write(wanted.has('file') ? text.replace(new RegExp(`${NO_FILES}\n$`), `${FILES}\n`) : text)
}

/**
 * No name of ours has anything else in it. What a shell would take for a command must not come to stand in its line.
 */
const PLAIN = /^\w[\w.-]*$/

function tell({ name, about }: FoundName, say: Complete): void {
  if (PLAIN.test(name)) say(name, about.replace(/\s+/g, ' ').replace(UNPRINTABLE, ''))
}

const UNPRINTABLE = /[\p{Cc}\p{Cf}]/gu

type Asked = (kind: Findable | 'file', say: Complete) => void

/** The answer of the library, which prints it. */
function suggestions(program: Command, args: string[], asked: Asked): string {
  const root = new RootCommand()
  describe(root, program, asked)
  for (const [path, command] of commandsOf(program)) {
    const described = root.command(path, command.description())
    describe(described, command, asked)
    // Global options stand behind a command too.
    for (const option of program.options) addOption(described, option, asked)
  }
  return captured(() => root.parse([...args]))
}

function describe(described: Completed, command: Command, asked: Asked): void {
  for (const option of command.createHelp().visibleOptions(command)) addOption(described, option, asked)
  for (const argument of command.registeredArguments)
    described.argument(argument.name(), (say) => ask(argument, argument.name(), { say, asked }), argument.variadic)
}

function addOption(described: Completed, option: Option, asked: Asked): void {
  const name = option.long?.slice(2)
  if (name === undefined || described.options.has(name)) return
  const alias = option.short?.slice(1)
  if (option.required || option.optional)
    described.option(name, option.description, (say) => ask(option, name, { say, asked }), alias)
  else described.option(name, option.description, alias)
}

/** Choices that are known, a kind of names that the service knows, or a file. */
function ask(one: Argument | Option, name: string, { say, asked }: { say: Complete; asked: Asked }): void {
  const { argChoices } = one
  if (argChoices) for (const choice of argChoices) say(choice, '')
  else if (isFindable(name)) asked(name, say)
  else if (/^(folder|file|input|answer-file|answer|home|config|ca-file|output)$/.test(name)) asked('file', say)
}

function* commandsOf(parent: Command, path = ''): Generator<[path: string, command: Command]> {
  for (const command of parent.createHelp().visibleCommands(parent)) {
    const full = path === '' ? command.name() : `${path} ${command.name()}`
    yield [full, command]
    yield* commandsOf(command, full)
  }
}

/** Which service is meant by the words so far. */
function flagsIn(program: Command, args: string[]): GlobalFlags {
  program.parseOptions(args)
  return program.opts<GlobalFlags>()
}

function captured(work: () => void): string {
  const lines: string[] = []
  const { log } = console
  console.log = (line: string) => void lines.push(line)
  try {
    work()
  } finally {
    console.log = log
  }
  return lines.map((line) => `${line}\n`).join('')
}
