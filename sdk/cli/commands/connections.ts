import { Option } from 'commander'
import type { Command } from 'commander'
import { ConnectionKind } from '@windlass/shared/model/connection.ts'
import { ops } from '@windlass/shared/ops/index.ts'
import type { Args } from '../../client/index.ts'
import { Failure } from '../failure.ts'
import { groupCommand } from '../from-table.ts'
import { jsonArgument } from '../json-argument.ts'
import { secretText } from '../secret-text.ts'
import { does } from '../session.ts'
import { note, print } from '../terminal.ts'
import { overlapOf, withOverlap } from './webhooks.ts'

/** `connections`: where providers post what happens there. */
export function addConnections(program: Command): void {
  const group = groupCommand(program, 'connections')
  addCreate(group)
  addSetSecret(group)
}

const CREATE_HELP = `
A secret that is made here is printed once, alone on standard output:
  windlass connections create github-acme --kind github
  windlass connections create pay --kind stripe --ask-secret        asks for the one that the provider shows
  pass show slack | windlass connections create slack --kind slack --ask-secret
  windlass connections create linear --kind hmac --hmac '{"header":"Linear-Signature","encoding":"hex"}'
It takes a session: an API key makes no secrets. The docs have the flags of fifteen providers.`

/** Flags whose values are JSON. */
const SCHEMES = ['hmac', 'bearer', 'event', 'dedupe'] as const

function addCreate(group: Command): void {
  const command = group
    .command('create')
    .description(ops.connections.create.summary)
    .argument('<name>', 'as descriptors name it')
    .addOption(
      new Option('--kind <kind>', 'whose scheme of signatures')
        .choices([...ConnectionKind.options])
        .makeOptionMandatory(),
    )
    .option('--ask-secret', 'ask for the secret, or read it from standard input; without it one is made')
    .option('-e, --environment <name>', 'of the runs, unless the descriptor names one')
    .option('--hmac <json>', 'how the provider signs: { header, encoding, prefix, algorithm, signed, … }')
    .option('--bearer <json>', 'where the secret stands: { header, prefix }')
    .option('--event <json>', 'where the event stands: { header } or { field }')
    .option('--dedupe <json>', 'where the id of a delivery stands: { header } or { field }')
    .addHelpText('after', CREATE_HELP)
  does(command, async (session, [name = ''], options) => {
    const given: Record<string, unknown> = { name, kind: options['kind'] }
    if (options['environment'] !== undefined) given['environment'] = options['environment']
    for (const flag of SCHEMES)
      if (options[flag] !== undefined) given[flag] = await jsonArgument(`--${flag}`, options[flag] as string)
    if (options['askSecret']) given['secret'] = await asked(name)
    const answer = await session.client.connections.create(given as Args<typeof ops.connections.create>)
    await session.answer(answer, () => {
      const { name } = answer.connection
      // A secret that was typed stays out of the terminal: who typed it has it.
      if (given['secret'] === undefined) print(answer.secret)
      const about = given['secret'] === undefined ? 'It is not shown again.' : 'It is set as you gave it.'
      note(`The secret of ${name}. ${about} The provider posts to`)
      note(answer.connection.url)
      if (answer.connection.urlNote !== null) note(answer.connection.urlNote)
    })
  })
}

async function asked(name: string): Promise<string> {
  const secret = await secretText(`Secret of ${name}`)
  if (secret === '') throw new Failure('The secret is empty.', 'leave out --ask-secret, and one is made')
  return secret
}

const SECRET_HELP = `
  windlass connections set-secret conn_…                     asks for it, without showing it
  windlass connections set-secret conn_… --make              makes a new one, and shows it once
  pass show stripe | windlass connections set-secret conn_… --overlap 0s
It takes a session: an API key writes no secrets.`

function addSetSecret(group: Command): void {
  const command = withOverlap(
    group
      .command('set-secret')
      .description(ops.connections.setSecret.summary)
      .argument('<connection>', 'its id')
      .option('--make', 'make a new one'),
  ).addHelpText('after', SECRET_HELP)
  does(command, async (session, [connection = ''], options) => {
    const overlapMs = overlapOf(options, 'connections set-secret … --overlap 1h')
    const secret = options['make'] ? undefined : await asked(connection)
    const answer = await session.client.connections.setSecret({ connection, secret, overlapMs })
    await session.answer(answer, () => {
      if (options['make']) print(answer.secret)
      note(`The secret of ${answer.connection.name} is set.`)
    })
  })
}
