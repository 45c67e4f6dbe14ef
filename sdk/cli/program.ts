import { readFileSync } from 'node:fs'
import { Command, CommanderError } from 'commander'
import { addAdmin } from './commands/admin.ts'
import { addAgent } from './commands/agent.ts'
import { addAudit } from './commands/audit.ts'
import { addCompletion } from './commands/completion.ts'
import { addDeploy } from './commands/deploy.ts'
import { addDev } from './commands/dev.ts'
import { addEnvironments } from './commands/environments.ts'
import { addFleet } from './commands/fleet.ts'
import { addInit } from './commands/init.ts'
import { addInputs } from './commands/inputs.ts'
import { addKeys } from './commands/keys.ts'
import { addLogs } from './commands/logs.ts'
import { addProfiles } from './commands/profiles.ts'
import { addRun } from './commands/run.ts'
import { addRuns } from './commands/runs.ts'
import { addSecrets } from './commands/secrets.ts'
import { addWorkflows } from './commands/workflows.ts'
import { EXIT, EXIT_TEXT } from './exit-codes.ts'
import { told } from './failure.ts'
import { addFromTable } from './from-table.ts'
import { note, paint } from './terminal.ts'

const HELP = `
Where to: --url, --api-key and --org, or WINDLASS_URL, WINDLASS_API_KEY and WINDLASS_ORG, or a profile (windlass profiles --help).
Without them the instance that \`npm start\` runs is found by itself, in WINDLASS_HOME or in the nearest .windlass folder from
here upwards. A session (--session, WINDLASS_SESSION) is used where no API key will do: to write keys and secrets.
With --json standard output is JSON alone, and an error is one line of JSON on standard error.
${EXIT_TEXT}`

/** Runs one command line. The exit code is left in `process.exitCode`, so that pipes are written out. */
export async function main(args: string[]): Promise<void> {
  const program = createProgram()
  try {
    await program.parseAsync(args, { from: 'user' })
  } catch (error) {
    process.exitCode = report(error, program, args)
  }
}

export function createProgram(): Command {
  const program = new Command('windlass')
    .description('Write, deploy and run Windlass workflows.')
    .version(version(), '-V, --version')
    .option('--url <url>', 'the address of the service')
    .option('--api-key <key>', 'an API key')
    .option('--session <token>', 'a session, for what no API key may do')
    .option('--org <slug>', 'the org')
    .option('--profile <name>', 'a service that was kept by `windlass profiles add`; `local` is what npm start runs')
    .option('--json', 'print the answer of the API as JSON')
    .configureHelp({ showGlobalOptions: true })
    // Errors are told by `report`, once and in one form.
    .configureOutput({ writeErr: (text) => helpOnly(text), outputError: () => undefined })
    .exitOverride()
    .showSuggestionAfterError(true)
    .addHelpText('after', HELP)
  addInit(program)
  addDev(program)
  addDeploy(program)
  addRun(program)
  addLogs(program)
  addRuns(program)
  addInputs(program)
  addWorkflows(program)
  addEnvironments(program)
  addSecrets(program)
  addKeys(program)
  addAudit(program)
  addProfiles(program)
  addFleet(program)
  addAgent(program)
  addAdmin(program)
  addCompletion(program)
  addFromTable(program)
  return program
}

function helpOnly(text: string): void {
  process.stderr.write(text)
}

function version(): string {
  const manifest = JSON.parse(readFileSync(new URL('../package.json', import.meta.url), 'utf8')) as { version: string }
  return manifest.version
}

function report(error: unknown, program: Command, args: string[]): number {
  // `--help` and `--version` have printed what was asked for.
  if (error instanceof CommanderError && error.exitCode === 0) return EXIT.ok
  // A group without a command has printed its help.
  if (error instanceof CommanderError && error.code === 'commander.help') return EXIT.usage
  const command = typed(program, args)
  const { message, next, exit, envelope } = told(error, command)
  if (args.includes('--json')) note(JSON.stringify(envelope))
  else {
    // Ctrl-C is no error of anybody.
    const label = exit === EXIT.interrupted ? '' : `${paint('red', 'error:')} `
    note(label + message)
    note(`Next: ${next ?? `windlass ${command} --help`.replace('  ', ' ')}`)
  }
  return exit
}

/** The command that was meant, as far as it exists: `runs get`. */
function typed(program: Command, args: string[]): string {
  const [first, second] = args.filter((arg) => !arg.startsWith('-'))
  const group = program.commands.find((command) => command.name() === first)
  if (!group) return ''
  const command = group.commands.find((inner) => inner.name() === second)
  return command ? `${group.name()} ${command.name()}` : group.name()
}
