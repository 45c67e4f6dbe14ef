import { Option } from 'commander'
import type { Command } from 'commander'
import { ops } from '@windlass/shared/ops/index.ts'
import type { ApiKey } from '@windlass/shared/model/api-key.ts'
import { ROLES, SCOPES } from '@windlass/shared/scopes.ts'
import type { Role, Scope } from '@windlass/shared/scopes.ts'
import { lengthFlag } from '../duration-flag.ts'
import { groupCommand, rowArgs, rowCommand } from '../from-table.ts'
import { tellNextPage } from '../next-page.ts'
import { does } from '../session.ts'
import { printTable } from '../table.ts'
import { cellTime, note, print } from '../terminal.ts'

export function addKeys(program: Command): void {
  const group = groupCommand(program, 'keys')
  addList(group)
  addCreate(group)
  addRevoke(group)
}

function addList(group: Command): void {
  does(rowCommand(group, 'list', ops.keys.list), async (session, positional, options) => {
    const answer = await session.client.keys.list(await rowArgs(ops.keys.list, positional, options))
    await session.answer(answer, async () => {
      const rows = answer.apiKeys.map((key) => [
        key.id,
        key.name,
        `${key.prefix}…`,
        key.role,
        key.scopes.join(' ') || 'all',
        stateOf(key),
        cellTime(key.lastUsedAt),
      ])
      await printTable(['KEY', 'NAME', 'BEGINS?', 'ROLE', 'SCOPES?', 'STATE', 'LAST USED?'], rows)
      tellNextPage(answer.nextCursor)
    })
  })
}

function stateOf({ revokedAt, expiresAt }: ApiKey): string {
  if (revokedAt !== null) return `revoked ${cellTime(revokedAt)}`
  if (expiresAt === null) return 'good'
  return expiresAt <= Date.now() ? `expired ${cellTime(expiresAt)}` : `good until ${cellTime(expiresAt)}`
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

function addRevoke(group: Command): void {
  const command = rowCommand(group, 'revoke', ops.keys.revoke, '\n  windlass keys list\n  windlass keys revoke key_…')
  does(command, async (session, [key = '']) => {
    const answer = await session.client.keys.revoke({ key })
    await session.answer(answer, () => {
      print(`${key} is revoked`)
      if (answer.schedules > 0)
        note(`Schedules that it has made go on: ${answer.schedules}. See: windlass schedules list`)
    })
  })
}
