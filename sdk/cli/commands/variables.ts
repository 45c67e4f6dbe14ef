import { readFile } from 'node:fs/promises'
import { parseEnv } from 'node:util'
import type { Command } from 'commander'
import { Failure } from '../failure.ts'
import { groupCommand } from '../from-table.ts'
import { does } from '../session.ts'
import { print } from '../terminal.ts'

/** `vars set`: several at once, typed or from a file. */
export function addVariables(program: Command): void {
  addVarsSet(groupCommand(program, 'variables'))
}

export const ENVIRONMENT_FLAG = [
  '-e, --environment <name>',
  'of this environment; left out: of the org, for all environments',
] as const

const SET_HELP = `
Runs that have started keep what they had. For values that nobody may read there is \`windlass secrets set\`.
  windlass vars set REGION=eu-central-1 LOG_LEVEL=debug
  windlass vars set -e staging --file .env`

function addVarsSet(group: Command): void {
  const command = group
    .command('set')
    .description('Set variables, which runs find in their environment.')
    .argument('[variables...]', 'NAME=VALUE, one or several')
    .option(...ENVIRONMENT_FLAG)
    .option('--file <file>', 'a file of NAME=VALUE lines, such as .env')
    .addHelpText('after', SET_HELP)
  does(command, async (session, positional, options) => {
    const environment = options['environment'] as string | undefined
    const pairs = await pairsOf(positional as unknown as [string[]], options['file'] as string | undefined)
    const variables = []
    // One after the other, so that a refusal leaves a beginning and not a mixture.
    for (const [name, value] of pairs)
      variables.push((await session.client.variables.set({ name, value, environment })).variable)
    await session.answer({ variables }, () => {
      const where = environment === undefined ? 'the org' : environment
      print(`${pairs.map(([name]) => name).join(', ')} ${pairs.length === 1 ? 'is' : 'are'} set for ${where}`)
    })
  })
}

async function pairsOf([given = []]: [string[]?], file: string | undefined): Promise<[string, string][]> {
  const fromFile = file === undefined ? [] : await fileOf(file)
  // What is typed goes over what the file says.
  const pairs = new Map([...fromFile, ...given.map(pairOf)])
  if (pairs.size > 0) return [...pairs]
  throw new Failure('No variable is given.', 'windlass vars set NAME=VALUE, or --file .env')
}

function pairOf(text: string): [string, string] {
  const at = text.indexOf('=')
  if (at > 0) return [text.slice(0, at), text.slice(at + 1)]
  throw new Failure(`\`${text}\` is not NAME=VALUE.`, `windlass vars set ${at === 0 ? 'NAME' : text}=VALUE`)
}

async function fileOf(file: string): Promise<[string, string][]> {
  const text = await readFile(file, 'utf8').catch((error: unknown) => {
    const why = error instanceof Error ? error.message : String(error)
    throw new Failure(`--file: cannot read ${file}: ${why}.`, 'windlass vars set --file path/to/.env')
  })
  const pairs = Object.entries(parseEnv(text.replace(/^\uFEFF/, ''))).map(([name, value]): [string, string] => [
    name,
    value ?? '',
  ])
  if (pairs.length > 0) return pairs
  throw new Failure(`${file} has no line of the form NAME=VALUE.`, 'windlass vars set --file path/to/.env')
}
