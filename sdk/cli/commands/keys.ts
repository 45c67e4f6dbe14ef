import { Option } from 'commander'
import type { Command } from 'commander'
import { ROLES, SCOPES } from '@windlass/shared/scopes.ts'
import type { Role, Scope } from '@windlass/shared/scopes.ts'
import { lengthFlag } from '../duration-flag.ts'
import { groupCommand } from '../from-table.ts'
import { does } from '../session.ts'
import { note, print } from '../terminal.ts'

/** `keys create`: the key alone on standard output, and its end as a length of time. */
export function addKeys(program: Command): void {
  addCreate(groupCommand(program, 'keys'))
}

const CREATE_HELP = `
The key is printed once, alone on standard output:
  windlass keys create ci --role member --scopes run:trigger,run:read --expires 90d
  WINDLASS_API_KEY=$(windlass keys create nightly --role member)
It takes a session: a key cannot make keys. Scopes: ${SCOPES.join(' ')}`

interface CreateFlags {
  role: Role
  scopes?: string[]
  expires?: string
}

function addCreate(group: Command): void {
  const command = group
    .command('create')
    .description('Make an API key. It is shown once.')
    .argument('<name>', 'what it is for')
    .addOption(new Option('--role <role>', 'at most your own').choices([...ROLES]).makeOptionMandatory())
    .option('--scopes <list>', 'only these operations, comma-separated; left out: all that the role may do', listOf)
    .option('--expires <duration>', 'after this long, such as 90d; left out: never')
    .addHelpText('after', CREATE_HELP)
  does(command, async (session, [name = ''], options) => {
    const { role, scopes, expires } = options as unknown as CreateFlags
    const expiresAt =
      expires === undefined ? undefined : Date.now() + lengthFlag('--expires', expires, 'keys create … --expires 90d')
    // The service names a scope that it does not know.
    const answer = await session.client.keys.create({ name, role, scopes: (scopes ?? []) as Scope[], expiresAt })
    await session.answer(answer, () => {
      print(answer.key)
      note(`${answer.apiKey.id}, ${role}, ${answer.apiKey.scopes.join(' ') || 'all scopes'}. It is not shown again.`)
      note(`Next: WINDLASS_API_KEY=<the key> windlass whoami; windlass keys revoke ${answer.apiKey.id} ends it`)
    })
  })
}

function listOf(text: string, before?: string[]): string[] {
  return [...(before ?? []), ...text.split(',').filter((scope) => scope !== '')]
}
