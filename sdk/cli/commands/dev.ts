import { realpath } from 'node:fs/promises'
import type { Command } from 'commander'
import { DESCRIPTOR_FILE } from '@windlass/shared/model/descriptor.ts'
import { EXIT } from '../exit-codes.ts'
import { Failure } from '../failure.ts'
import { jsonArgument } from '../json-argument.ts'
import { does } from '../session.ts'
import { note } from '../terminal.ts'
import { channelsOf } from './run.ts'

const HELP = `
Every save is deployed as a new version; a save that changes nothing is not. With --run or --input the new code is run at once:
  windlass dev                                  deploys at every save
  windlass dev hello --input '{"name":"Ada"}'   and runs it
  windlass dev hello --input @input.json -e dev and reads the input anew each time
A save while a run goes on cancels that run and starts the next; --no-restart lets it go on. What does not build is told with
its line, and the next save tries again. Ctrl-C ends it with 130; the run that is being followed goes on.`

interface DevFlags {
  input?: string
  run?: boolean
  environment?: string
  restart: boolean
  logs?: boolean
}

export function addDev(program: Command): void {
  const command = program
    .command('dev')
    .description('Deploy the workflow in a folder at every save, and run it.')
    .argument('[folder]', `the folder that holds ${DESCRIPTOR_FILE}`, '.')
    .option('-i, --input <json>', 'run it with this input: JSON or @file')
    .option('--run', 'run it without an input')
    .option('-e, --environment <name>', 'the environment whose variables the runs get')
    .option('--no-restart', 'a save lets the run of the save before go on')
    .option('--logs', 'show what the program prints (the default)')
    .option('--no-logs', 'do not')
    .addHelpText('after', HELP)
  does(command, async (session, [folder = '.'], options) => {
    const flags = options as unknown as DevFlags
    await refuseBadInput(flags.input)
    // Asked for now, so that a missing service is told before a folder is watched.
    note(`Watching ${folder === '.' ? 'this folder' : folder} for ${session.settings.url}. Ctrl-C ends it.`)
    const { DevLoop } = await import('../dev/dev-loop.ts')
    const isRun = flags.run === true || flags.input !== undefined || flags.environment !== undefined
    const loop = new DevLoop(session, {
      folder: await folderAt(folder),
      run: isRun ? { input: flags.input, environment: flags.environment } : undefined,
      channels: channelsOf(flags.logs ?? true),
      restart: flags.restart,
    })
    for (const signal of ['SIGINT', 'SIGTERM'] as const) {
      process.once(signal, () => {
        session.progress.end()
        if (loop.running && !session.isJson)
          note(`\n${loop.running.id} goes on. windlass runs cancel ${loop.running.id} ends it.`)
        process.exit(EXIT.interrupted)
      })
    }
    return loop.forever()
  })
}

async function refuseBadInput(input: string | undefined): Promise<void> {
  if (input === '-')
    throw new Failure('--input - can be read once only, and each save is run.', 'windlass dev … --input @input.json')
  if (input !== undefined) await jsonArgument('--input', input)
}

function folderAt(given: string): Promise<string> {
  return realpath(given).catch(() => {
    throw new Failure(`${given} does not exist.`, `windlass init ${given}, or the folder that holds ${DESCRIPTOR_FILE}`)
  })
}
