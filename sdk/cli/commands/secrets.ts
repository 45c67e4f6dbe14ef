import type { Command } from 'commander'
import { Failure } from '../failure.ts'
import { groupCommand } from '../from-table.ts'
import { secretFile, secretText } from '../secret-text.ts'
import { does } from '../session.ts'
import { print } from '../terminal.ts'
import { ENVIRONMENT_FLAG } from './variables.ts'

/** `secrets set`: the value is asked for, and never typed among the arguments. */
export function addSecrets(program: Command): void {
  addSet(groupCommand(program, 'secrets'))
}

const SET_HELP = `
The value never stands on the command line, where a history and other users could read it:
  windlass secrets set STRIPE_KEY                          asks for it, without showing it
  pass show stripe | windlass secrets set STRIPE_KEY       one line break at the end of piped input is cut
  windlass secrets set TLS_KEY -e prod --file key.pem      a file is taken as it is, its last line break included
It takes a session: an API key writes no secrets. Each process of a run that starts from now on gets the new value.`

function addSet(group: Command): void {
  const command = group
    .command('set')
    .description('Set a secret from standard input, a hidden prompt or a file. It is not shown again.')
    .argument('<name>')
    .option(...ENVIRONMENT_FLAG)
    .option('--file <file>', 'a file that holds the value')
    .addHelpText('after', SET_HELP)
  does(command, async (session, [name = ''], options) => {
    refuseValueInName(name)
    const file = options['file'] as string | undefined
    const environment = options['environment'] as string | undefined
    // Before a person has typed it in vain.
    const { client } = session
    const value = file === undefined ? await secretText(name) : await secretFile(file)
    if (value === '') throw new Failure('The value is empty.', `windlass secrets delete ${name} removes a secret`)
    const answer = await client.secrets.set({ name, value, environment })
    await session.answer(answer, () => print(`${name} is set for ${environment ?? 'the org'}`))
  })
}

function refuseValueInName(name: string): void {
  const at = name.indexOf('=')
  if (at === -1) return
  throw new Failure(
    'A value on the command line is no secret any more: it is in the history of this shell.',
    `windlass secrets set ${name.slice(0, at)}, which asks for a new value`,
  )
}
