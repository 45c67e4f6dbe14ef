import { Command, CommanderError } from 'commander'
import manifest from '../package.json' with { type: 'json' }
import { EXIT } from './exit-codes.ts'
import { reportOf } from './failure.ts'
import type { FailureReport } from './failure.ts'
import { heedLostOutput } from './lost-output.ts'
import { behindBar, note, paint } from './terminal.ts'

/**
 * `windlass` without any command yet: in a checkout it gets all of them, on the machine of an agent those of the agent.
 */
export function createCommandLine(description: string): Command {
  return (
    new Command('windlass')
      .description(description)
      .version(manifest.version, '-V, --version')
      .configureHelp({ showGlobalOptions: true })
      // Errors are told by `report`, once and in one form.
      .configureOutput({ writeErr: (text) => helpOnly(text), outputError: () => undefined })
      .exitOverride()
      .showSuggestionAfterError(true)
  )
}

/** Runs one command line. The exit code is left in `process.exitCode`, so that pipes are written out. */
export async function runCommandLine(program: Command, args: string[]): Promise<void> {
  try {
    await program.parseAsync(args, { from: 'user' })
  } catch (error) {
    process.exitCode = report(error, program, args)
  }
}

/** Runs the command line of this process, whose standard output and error may be taken away meanwhile. */
export async function runThisProcess(run: (args: string[]) => Promise<void>): Promise<void> {
  const args = process.argv.slice(2)
  let isOver = false
  heedLostOutput({ isOver: () => isOver, tell: (failure) => tell(reportOf(failure, ''), '', args) })
  await run(args)
  isOver = true
}

/** Ctrl-C is no error of anybody, and neither is `windlass logs -f | head`. */
const QUIET: readonly number[] = [EXIT.interrupted, EXIT.unread]

function helpOnly(text: string): void {
  process.stderr.write(text)
}

function report(error: unknown, program: Command, args: string[]): number {
  // `--help` and `--version` have printed what was asked for.
  if (error instanceof CommanderError && error.exitCode === 0) return EXIT.ok
  // A group without a command has printed its help.
  if (error instanceof CommanderError && error.code === 'commander.help') return EXIT.usage
  const command = typed(program, args)
  const found = reportOf(error, command)
  tell(found, command, args)
  return found.exit
}

function tell({ message, next, exit, envelope }: FailureReport, command: string, args: string[]): void {
  if (args.includes('--json')) note(JSON.stringify(envelope))
  else {
    const label = QUIET.includes(exit) ? '' : `${paint('red', 'error:')} `
    note(label + behindBar(message, process.stderr))
    note(`Next: ${next ?? `windlass ${command} --help`.replace('  ', ' ')}`)
  }
}

/** The command that was meant, as far as it exists: `runs get`. */
function typed(program: Command, args: string[]): string {
  const [first, second] = args.filter((arg) => !arg.startsWith('-'))
  const group = program.commands.find((command) => command.name() === first)
  if (!group) return ''
  const command = group.commands.find((inner) => inner.name() === second)
  return command ? `${group.name()} ${command.name()}` : group.name()
}
